"""How much of each factor each latent of a model tells."""

from lddr.report.drawing.heat_maps import colour_bar, draw_matrix
from lddr.report.figures.figure import Drawn, card_figures
from lddr.report.loaded import LoadedRun
from lddr.report.style import HIGHLIGHT, SEQUENTIAL, new_figure
from lddr.runs.information import information_of

TOLD = (
    "Mutual information of each latent with each factor, as a share of the factor's entropy; the framed latents "
    "know most of a factor. The MIG is the mean lead of the framed over the next best."
)


@card_figures.add("information", "Information about the factors", 40)
def information(loaded: LoadedRun) -> Drawn:
    """Latents by factors, from the MIG's matrix; the best latent of each factor is framed."""
    from matplotlib.patches import Rectangle

    known = information_of(loaded.run.folder)
    latents, factors = known.matrix.shape
    figure = new_figure(1.6 + 0.72 * factors, 1.0 + 0.32 * latents)
    axes = figure.subplots()
    names = [name.replace("_", " ") for name in known.factors]
    draw_matrix(axes, known.shares, [f"latent {latent}" for latent in range(latents)], names, SEQUENTIAL, 0)
    for factor, latent in enumerate(known.shares.argmax(axis=0)):
        place = factor - 0.48, latent - 0.46
        axes.add_patch(Rectangle(place, 0.96, 0.92, fill=False, edgecolor=HIGHLIGHT, linewidth=1.6))
    colour_bar(figure, [axes], "share of the factor's entropy")
    return Drawn(figure, TOLD)
