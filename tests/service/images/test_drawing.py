"""What is drawn over a picture."""

from io import BytesIO

import numpy as np
from PIL import Image

from service.images.drawing import Drawing


def test_a_heatmap_reddens_what_raises_a_score_whatever_colour_the_picture_has() -> None:
    pixels = np.full((20, 40, 3), (255, 0, 80), np.uint8)
    drawing = Drawing(pixels, (80, 40))
    drawing.heatmap(np.array([[2.0, -1.0]], np.float32), (0, 0, 80, 20))
    drawn = np.asarray(Image.open(BytesIO(drawing.encode()))).astype(int)
    raises, lowers, outside = drawn[2, 2], drawn[2, -3], drawn[-2, 2]
    assert raises[0] > max(raises[1:]) + 100
    assert lowers[2] > lowers[0] + 40
    assert outside[0] == outside[1] == outside[2]
