"""Crops of pictures as a batch: what bounds them."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from engine import Port
from service.codec import crops
from service.codec.crops import crop_input
from service.codec.decoded import Picture
from service.config.image_config import ImageConfig
from service.config.limits import Limits
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.images.preparation import prepare
from tests.service.codec.payloads import encoded

CONFIG = ImageConfig()
PORT = Port(operator="in0", operand="0", shape=(None, 3, 8, 8), dtype="f32")
PICTURE = Picture("in0", encoded(Image.new("RGB", (200, 100))), ImageGeometry(200, 100, (1, 1), (0, 0)))
WHOLE = np.array([[0, 0], [200, 100]], float)


def test_crops_that_overlap_take_no_more_memory_than_pictures_may(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watched(images, *rest):  # type: ignore[no-untyped-def]
        seen.extend(image.size[0] * image.size[1] for image in images)
        return prepare(images, *rest)

    monkeypatch.setattr(crops, "prepare", watched)
    limits = Limits(image_pixels=40_000)
    batch = crop_input([(PICTURE, [WHOLE] * 100)], [0] * 100, 0.0, PORT, CONFIG, CONFIG, limits)
    assert batch.shape == (100, 3, 8, 8)
    assert len(seen) == 100
    assert sum(seen) <= limits.image_pixels


def test_too_many_crops_are_refused_before_the_picture_is_decoded() -> None:
    picture = replace(PICTURE, data=b"no picture")
    with pytest.raises(ServiceError) as caught:
        crop_input(
            [(picture, [WHOLE] * 100)], [0] * 100, 0.0, PORT, CONFIG, CONFIG, Limits(tensor_elements=9999)
        )
    assert caught.value.code == "tensor_too_large"
