from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine import Port
from service.config.image_config import ImageConfig
from service.images import planes
from service.images.axis_windows import Axis, smooth_bicubic, smooth_bilinear
from service.images.picture_strips import Picture
from service.images.preparation import ImageInput, find_image_input, open_images, prepare
from service.images.resizing import Part, resize
from tests.cases import check_each
from tests.service.codec.payloads import encoded
from tests.service.images.cases import CASES, MEAN, STD, ResizingCase, draw_picture, golden


def test_as_the_library_does() -> None:
    def check(case: ResizingCase) -> None:
        config = ImageConfig.model_validate({**case.keys, "mean": MEAN, "std": STD})
        columns, rows = case.array
        target = find_image_input(config, Port("pnnx_input_0", "0", (1, 3, rows, columns), "f32"))
        assert isinstance(target, ImageInput)
        picture = encoded(Image.fromarray(draw_picture(case.picture)))
        made = prepare(open_images([picture], 1 << 20), config, target).array
        expected = (golden(case) / 255 - np.array(MEAN)) / STD
        np.testing.assert_allclose(made[0].transpose(1, 2, 0), expected, rtol=0, atol=1e-3)

    check_each(CASES, check)


@pytest.mark.parametrize("make", [smooth_bilinear, smooth_bicubic])
@pytest.mark.parametrize(("pixels", "count"), [(1, 1), (3, 1), (1, 7), (50_000, 3), (5, 4)])
def test_windows_lie_in_the_picture(make: type, pixels: int, count: int) -> None:
    windows = make(Axis(pixels, count, pixels / count, 0.0))
    assert windows.taps.min() >= 0
    assert windows.taps.max() < pixels
    np.testing.assert_allclose(windows.weights.sum(axis=1), 1)


@pytest.mark.parametrize("resample", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("picture", "array"), [((3, 2), (1, 9)), ((700, 40), (33, 70)), ((64, 64), (1, 1))])
def test_filters_are_those_of_pillow_before_it_rounds(
    resample: str, picture: tuple[int, int], array: tuple[int, int]
) -> None:
    levels = draw_picture(picture)[..., 0]
    part = Part((0, 0, *picture), array)
    config = ImageConfig.model_validate({"resize_as": "torch", "resample": resample})
    made = resize(Image.fromarray(levels), part, config)
    fractions = Image.fromarray(levels.astype(np.float32))  # mode F, which Pillow does not round
    expected = np.asarray(fractions.resize(array, Image.Resampling[resample.upper()]))
    np.testing.assert_allclose(made[..., 0], expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("library", ["torch", "opencv"])
def test_only_needed_rows_are_read(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image.fromarray(draw_picture((8, 4000)))
    read: list[int] = []

    def crop(box: tuple[int, int, int, int]) -> Image.Image:
        read.append(box[3] - box[1])
        return Image.Image.crop(image, box)

    monkeypatch.setattr(image, "crop", crop)
    config = ImageConfig.model_validate({"resize_as": library, "antialias": False})
    resize(image, Part((0, 0, 8, 4000), (8, 10)), config)
    assert sum(read) <= 20


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize(
    "keys", [{}, {"resize_as": "torch"}, {"resize": "fit"}, {"resize": "crop", "shorter_side": 70}]
)
def test_drafts_of_large_pictures_look_like_them(keys: dict[str, Any], orientation: int) -> None:
    tags = Image.Exif()
    tags[0x0112] = orientation
    smooth = Image.fromarray(draw_picture((200, 120))).resize((2400, 1760), Image.Resampling.BICUBIC)
    picture = encoded(smooth, "JPEG", quality=92, exif=tags)
    drafted, whole = (
        prepare(
            open_images([picture], 1 << 30),
            ImageConfig.model_validate({**keys, "draft": draft, "size": (64, 64), "scale": 1.0}),
            ImageInput(1, True, 64, 64, np.dtype(np.float32)),
        ).array
        for draft in (True, False)
    )
    assert not np.array_equal(drafted, whole)
    np.testing.assert_allclose(drafted, whole, rtol=0, atol=6)
    assert np.abs(drafted - whole).mean() < 1


@pytest.mark.parametrize(
    ("keys", "size", "expected"),
    [
        ({}, (4000, 3000), (1000, 750)),
        ({}, (4001, 3000), (4001, 3000)),  # the last column would stand for a quarter of what the others do
        ({"draft": False}, (4000, 3000), (4000, 3000)),
        ({"resample": "nearest"}, (4000, 3000), (4000, 3000)),
        ({"resize_as": "opencv"}, (4000, 3000), (4000, 3000)),
        ({"resize_as": "opencv", "resample": "box"}, (4000, 3000), (1000, 750)),
        ({}, (1600, 1200), (1600, 1200)),
    ],
)
def test_which_pictures_are_drafted(
    keys: dict[str, Any], size: tuple[int, int], expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def noted(image: Picture, *args: Any) -> Any:
        seen.append((image.width, image.height))
        return resize(image, *args)

    monkeypatch.setattr(planes, "resize", noted)
    config = ImageConfig.model_validate(keys)
    picture = encoded(Image.new("L", size, 77), "JPEG")
    made = prepare(
        open_images([picture], 1 << 30), config, ImageInput(1, True, 240, 320, np.dtype(np.float32))
    )
    assert seen == [expected]
    np.testing.assert_allclose(made.array, 77 / 255, atol=1e-5)
    assert (made.geometries[0].width, made.geometries[0].height) == size
