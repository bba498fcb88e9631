"""What a figure is, and the registries of those that reports and model cards show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lddr.report.exhibits import Exhibits, Source, UnwantedError
from lddr.report.groups import Group
from lddr.report.loaded import LoadedRun
from lddr.report.style import Figure, house_style


@dataclass(frozen=True)
class Drawn:
    """A drawing, and the sentences below it."""

    figure: Figure
    caption: str


class Figures(Exhibits[Source, Drawn]):
    """Figures, drawn in the house style."""

    def add(
        self, name: str, title: str, order: int
    ) -> Callable[[Callable[[Source], Drawn]], Callable[[Source], Drawn]]:
        """Decorator: let pages show what this function draws."""
        register = super().add(name, title, order)
        return lambda draw: register(house_style()(draw))


def check_wanted(groups: Sequence[Group]) -> None:
    """For a sketch that needs no runs: it explains the paper, not images that are somebody's own."""
    if groups and all(group.is_own for group in groups):
        raise UnwantedError("the runs are on images of one's own")


figures: Figures[Sequence[Group]] = Figures("figure", homes=("lddr.report.figures",))
card_figures: Figures[LoadedRun] = Figures("figure of a model", homes=("lddr.report.figures.card",))
