from io import BytesIO

import numpy as np
from PIL import Image

from lddr.report.traversals import Traversal, animation
from lddr.report.traversals import frames as frames_of


def test_frames_go_there_and_back():
    greys = np.linspace(0, 1, 4, dtype=np.float32)
    steps = np.broadcast_to(greys[:, np.newaxis, np.newaxis, np.newaxis], (4, 8, 8, 1))
    rows = [Traversal(0, "four", steps, ("",) * 4), Traversal(1, "two", steps[[0, 3]], ("",) * 2)]
    frames = frames_of(rows, size=16, count=4)
    assert len(frames) == 6
    centres = [[frame.getpixel((6 + 8 + number * 22, frame.height - 14))[0] for number in (0, 1)] for frame in frames]
    assert [four for four, _ in centres] == [0, 85, 170, 255, 170, 85]
    assert [two for _, two in centres] == [0, 0, 255, 255, 255, 0]


def test_the_gif_moves_and_loops(hardly_trained):
    with Image.open(BytesIO(animation(hardly_trained["dvae"], size=32))) as moving:
        assert moving.is_animated
        assert moving.info["loop"] == 0
        assert moving.size == (6 + 2 * 38, 26 + 32 + 6)
