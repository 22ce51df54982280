"""Boxes are placed by the pictures of one input, whichever protocol the request came by."""

from service.codec import Picture
from service.images.geometry import ImageGeometry
from service.infer.exchange import geometries


def picture(name: str, width: int) -> Picture:
    return Picture(name, b"", ImageGeometry(width, 10, (1.0, 1.0), (0.0, 0.0)))


def test_pictures_of_other_inputs_place_nothing() -> None:
    first, second = picture("left", 1), picture("left", 2)
    others = picture("right", 3), picture("right", 4)
    assert geometries([first, second, *others]) == (first.geometry, second.geometry)
    assert geometries([]) == ()
