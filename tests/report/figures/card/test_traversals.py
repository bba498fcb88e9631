import numpy as np

from lddr.report.exhibits import card_figures


def test_traversals_are_rows_of_pictures_with_names(hardly_trained):
    drawn = card_figures["traversals"].make(hardly_trained["dvae"])
    rows = np.array(drawn.figure.axes).reshape(2, 10)
    assert [axes.get_ylabel() for axes in rows[:, 0]] == ["x", "y"]
    assert [axes.get_title() for axes in rows[0][[0, -1]]] == ["0.2", "0.8"]
    assert "its active categories" in drawn.caption
    plain = card_figures["traversals"].make(hardly_trained["vae"]).caption
    assert "The latents in use" in plain
    assert "the share of the factor's entropy, if that is at least 20 %" in plain
    assert "entropy" not in drawn.caption  # tied latents have their factor's name
