from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine import Array, Port
from service.config.image_config import ImageConfig
from service.config.model_config import ModelConfig, ModelConfigError
from service.images.preparation import ImageInput, find_image_input, open_images, prepare
from service.tasks import TaskModel, open_task
from tests.service.codec.payloads import encoded


def config(**keys: Any) -> ImageConfig:
    return ImageConfig.model_validate(keys)


def port(*shape: int | None, dtype: str | None = "f32") -> Port:
    return Port("pnnx_input_0", "0", shape, dtype)


def prepared(image: Image.Image, settings: ImageConfig, target: Port) -> Array:
    found = find_image_input(settings, target)
    assert isinstance(found, ImageInput), found
    return prepare(open_images([encoded(image)], 1 << 30), settings, found).array


def test_normalisation_by_channel() -> None:
    settings = config(size=[2, 3], mean=[0.5, 0.25, 0], std=[0.5, 1, 2])
    array = prepared(Image.new("RGB", (3, 2), (255, 51, 102)), settings, port(1, 3, 2, 3))
    assert array.shape == (1, 3, 2, 3)
    assert array.dtype == np.float32
    np.testing.assert_allclose(array[0, :, 1, 2], [1.0, -0.05, 0.2], atol=1e-7)


def test_order_of_channels_and_places() -> None:
    stored = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    image = Image.fromarray(stored)
    rgb = prepared(image, config(scale=1), port(1, 3, 2, 3))
    np.testing.assert_array_equal(rgb[0], stored.transpose(2, 0, 1))
    bgr = prepared(image, config(scale=1, colour="bgr", mean=[1, 2, 3]), port(1, 3, 2, 3))
    np.testing.assert_array_equal(
        bgr[0], stored[..., ::-1].transpose(2, 0, 1) - np.array([[[1]], [[2]], [[3]]])
    )


def test_gray_without_a_batch() -> None:
    array = prepared(Image.new("RGB", (4, 4), "white"), config(colour="gray"), port(1, 2, 2))
    np.testing.assert_array_equal(array, np.ones((1, 2, 2), np.float32))


def test_whole_numbers() -> None:
    array = prepared(Image.new("RGB", (2, 2), (1, 2, 250)), config(scale=1), port(None, 3, 2, 2, dtype="u8"))
    assert array.dtype == np.uint8
    assert array[0, :, 0, 0].tolist() == [1, 2, 250]


def test_whole_numbers_are_the_nearest_and_never_wrap_round() -> None:
    edge = Image.fromarray(np.repeat(np.array([[0, 255]], np.uint8), 8, axis=1).repeat(4, axis=0))
    keys = {"scale": 1, "colour": "gray", "resize_as": "torch", "resample": "bicubic"}
    exact = prepared(edge, config(**keys), port(None, 1, 4, 31))
    assert exact.min() < 0 < 255 < exact.max()
    array = prepared(edge, config(**keys), port(None, 1, 4, 31, dtype="u8"))
    np.testing.assert_array_equal(array, np.rint(exact).clip(0, 255))


def test_other_floats() -> None:
    array = prepared(Image.new("RGB", (2, 2), "white"), config(), port(None, 3, 2, 2, dtype="f16"))
    assert array.dtype == np.float16


def halves() -> Image.Image:
    """4 rows of 8 columns: 2 columns of 10, 4 of 100, 2 of 200."""
    columns = np.repeat([10, 100, 200], [2, 4, 2]).astype(np.uint8)
    return Image.fromarray(np.tile(columns, (4, 1)))


def levels(target: tuple[int, int], **keys: Any) -> Array:
    settings = config(colour="gray", scale=1, resample="nearest", size=list(target), **keys)
    return np.asarray(prepared(halves(), settings, port(1, 1, *target))[0, 0])


def test_stretch() -> None:
    assert levels((2, 4), resize="stretch").tolist() == [[10, 100, 100, 200]] * 2
    assert levels((4, 4), resize="stretch").tolist() == [[10, 100, 100, 200]] * 4


def test_fit() -> None:
    shown = [10, 100, 100, 200]
    assert levels((4, 4), resize="fit", pad=7).tolist() == [[7] * 4, shown, shown, [7] * 4]
    assert levels((1, 4), resize="fit").tolist() == [[0, 100, 200, 0]]


def test_crop() -> None:
    assert levels((4, 4), resize="crop").tolist() == [[100] * 4] * 4
    assert levels((2, 2), resize="crop", crop_fraction=0.5).tolist() == [[100] * 2] * 2
    assert levels((1, 8), resize="crop").tolist() == [[10, 10, 100, 100, 100, 100, 200, 200]]


def test_crop_is_what_resizing_and_cutting_give() -> None:
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (128, 192, 3), np.uint8))
    settings = config(size=[56, 56], resize="crop", crop_fraction=56 / 64, scale=1)
    array = prepared(image, settings, port(None, 3, None, None))
    cut = np.asarray(image.resize((96, 64), Image.Resampling.BILINEAR), np.float32)[4:60, 20:76]
    np.testing.assert_allclose(array[0], cut.transpose(2, 0, 1), atol=1.01)


@pytest.mark.parametrize("resize", ["stretch", "fit", "crop"])
@pytest.mark.parametrize("size", [(1, 30_000), (30_000, 1), (1, 1)])
def test_extreme_aspect_ratios(resize: str, size: tuple[int, int]) -> None:
    settings = config(colour="gray", size=[16, 16], resize=resize, pad=255)
    array = prepared(Image.new("L", size, 255), settings, port(None, 1, 16, 16))
    assert array.shape == (1, 1, 16, 16)
    assert (array == 1).all()


def test_shrinking_smooths() -> None:
    board = Image.fromarray((np.indices((64, 64)).sum(axis=0) % 2 * 255).astype(np.uint8))
    array = prepared(board, config(colour="gray", size=[8, 8]), port(None, 1, 8, 8))
    np.testing.assert_allclose(array, 0.5, atol=0.02)


@pytest.mark.parametrize(
    ("settings", "target", "expected"),
    [
        (config(), port(None, 3, 8, 9), ImageInput(None, True, 8, 9, np.dtype("f4"))),
        (config(), port(2, 3, 8, 9), ImageInput(2, True, 8, 9, np.dtype("f4"))),
        (config(), port(3, 8, 9), ImageInput(1, False, 8, 9, np.dtype("f4"))),
        (config(size=[4, 5]), port(None, None, None, None), ImageInput(None, True, 4, 5, np.dtype("f4"))),
        (config(size=[4, 5]), Port("i", "0", None, None), ImageInput(None, True, 4, 5, np.dtype("f4"))),
    ],
)
def test_target(settings: ImageConfig, target: Port, expected: ImageInput) -> None:
    assert find_image_input(settings, target) == expected
    open_task(TaskModel(ModelConfig(image=settings), [port(1, 9), target], []))


@pytest.mark.parametrize(
    ("settings", "target", "text"),
    [
        (config(), port(1, 10), "is not (batch, channels, height, width)"),
        (config(), port(1, 1, 8, 8), "colour is rgb, 3 channels, but input 0: (1,1,8,8)f32 has 1"),
        (config(colour="gray"), port(1, 3, 8, 8), "colour is gray"),
        (config(), port(1, 3, None, 8), "size is not given"),
        (config(), port(1, 3, 8, 8, dtype="u8"), "whole numbers"),
        (config(scale=1, mean=[1]), port(1, 3, 8, 8, dtype="i64"), "whole numbers"),
        (config(), port(1, 3, 8, 8, dtype="c64"), "does not take"),
        (config(), port(1, 3, 8, 8, dtype="bool"), "does not take"),
        (config(scale=1), port(1, 3, 8, 8, dtype="i8"), "does not take"),
    ],
)
def test_inputs_that_take_no_such_image(settings: ImageConfig, target: Port, text: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        open_task(TaskModel(ModelConfig(image=settings), [target], []))
    assert caught.value.key == "image"
    assert text in str(caught.value)


def test_graph_without_inputs() -> None:
    with pytest.raises(ModelConfigError, match="no input"):
        open_task(TaskModel(ModelConfig(image=config()), [], []))
