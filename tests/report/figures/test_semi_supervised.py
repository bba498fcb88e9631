from lddr.report.exhibits import figures
from lddr_paper.comparisons import RULES
from tests.report.grouped import grouped


def test_a_panel_per_rule_with_a_bar_per_method(labelled_runs):
    drawn = figures["semi-supervised"].make(grouped(labelled_runs))
    figure = drawn.figure
    assert [axes.get_title() for axes in figure.axes] == [f"{rule}, 100 labels△" for rule in RULES]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "VAE, BCE",
        "D-VAE, cross-entropy",
        "D-VAE, masked",
    ]
    widths = [[bar.get_width() for bar in axes.patches] for axes in figure.axes]
    assert widths == [[0, 0, 100], [75, 0, 25], [50, 0, 50]]
    assert [text.get_text() for text in figure.axes[1].texts] == ["75", "0", "25"]
    assert [bar.get_hatch() or "" for bar in figure.axes[0].patches] == ["", "", "////"]
    assert {axes.get_xlabel() for axes in figure.axes} == {"best in % of cases"}
    assert figure.axes[0].get_xlim()[1] > 100
    assert "over 2 cases" in drawn.caption
    assert "△: of fewer than five runs" in drawn.caption
