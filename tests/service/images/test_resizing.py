import numpy as np
import pytest
from PIL import Image

from engine import Port
from service.config.image_config import ImageConfig
from service.images.axis_windows import Axis, smooth_bicubic, smooth_bilinear
from service.images.preparation import ImageInput, find_image_input, open_images, prepare
from service.images.resizing import Part, resize
from tests.service.codec.payloads import encoded
from tests.service.images.cases import CASES, MEAN, STD, ResizingCase, draw_picture, golden


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_the_library_does(case: ResizingCase) -> None:
    config = ImageConfig.model_validate({**case.keys, "mean": MEAN, "std": STD})
    columns, rows = case.array
    target = find_image_input(config, Port("pnnx_input_0", "0", (1, 3, rows, columns), "f32"))
    assert isinstance(target, ImageInput)
    picture = encoded(Image.fromarray(draw_picture(case.picture)))
    made = prepare(open_images([picture], 1 << 20), config, target).array
    expected = (golden(case) / 255 - np.array(MEAN)) / STD
    np.testing.assert_allclose(made[0].transpose(1, 2, 0), expected, rtol=0, atol=1e-3)


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
