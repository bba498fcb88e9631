import numpy as np

from lddr.report.exhibits import card_figures


def test_reconstructions_stand_below_their_images(hardly_trained):
    figure = card_figures["reconstructions"].make(hardly_trained["dvae"]).figure
    rows = np.array(figure.axes).reshape(2, 10)
    assert [axes.get_ylabel() for axes in rows[:, 0]] == ["input", "output"]
    images = hardly_trained["dvae"].images(10)
    outputs = hardly_trained["dvae"].model.reconstruct(images)
    for top, bottom, image, output in zip(*rows, images, outputs, strict=True):
        assert np.array_equal(top.images[0].get_array(), np.broadcast_to(image, (32, 32, 3)))
        assert np.allclose(bottom.images[0].get_array(), np.broadcast_to(output, (32, 32, 3)))
