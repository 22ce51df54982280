"""Segmentation against PyTorch's interpolation, stored, and against plain loops."""

from base64 import b64decode
from io import BytesIO
from itertools import product
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine import Array, Port
from service.config.image_config import ImageConfig
from service.config.model_config import ModelConfig, ModelConfigError
from service.errors import ServiceError
from service.images.drawing import COLOURS, Drawing
from service.images.geometry import ImageGeometry, place_image
from service.tasks import TaskModel
from service.tasks.run_lengths import decode_counts
from service.tasks.segmentation import MAX_SCORES, RegionView, SemanticSegmentation
from tests.cases import check_each

LABELS = ["ground", "wall", "door"]


def task(
    shape: tuple[int | None, ...] | None = (None, 3, 8, 8), dtype: str = "f32", **keys: Any
) -> SemanticSegmentation:
    labels = keys.pop("labels", LABELS)
    image = keys.pop("image", {"size": [8, 8]})
    values = {"task": "segmentation", "segmentation": keys} | ({"labels": labels} if labels else {})
    config = ModelConfig.model_validate(values | ({"image": image} if image else {}))
    inputs = [Port("pnnx_input_0", "0", (None, 3, 8, 8), "f32")]
    return SemanticSegmentation(TaskModel(config, inputs, [Port("out0", "1", shape, dtype)]))


def scores(*shape: int) -> Array:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def interpolated(plane: Array, x: float, y: float) -> float:
    """Interpolate bilinearly at a point of a map whose pixels have their centres at halves."""
    rows, columns = plane.shape
    x, y = min(max(x - 0.5, 0), columns - 1), min(max(y - 0.5, 0), rows - 1)
    left, top = int(x), int(y)
    right, bottom = min(left + 1, columns - 1), min(top + 1, rows - 1)
    upper = plane[top, left] * (1 - (x - left)) + plane[top, right] * (x - left)
    lower = plane[bottom, left] * (1 - (x - left)) + plane[bottom, right] * (x - left)
    return float(upper * (1 - (y - top)) + lower * (y - top))


def expected_classes(maps: Array, geometry: ImageGeometry) -> Array:
    """Return the class of each pixel of a picture for an input of 8 x 8, -1 where that does not show it."""
    stride = 8 / maps.shape[-1]
    out = np.full((geometry.height, geometry.width), -1)
    for row in range(geometry.height):
        for column in range(geometry.width):
            x = (column + 0.5) * geometry.scale[0] + geometry.offset[0]
            y = (row + 0.5) * geometry.scale[1] + geometry.offset[1]
            if 0 <= x <= 8 and 0 <= y <= 8:
                out[row, column] = np.argmax([interpolated(plane, x / stride, y / stride) for plane in maps])
    return out


def test_classes_of_the_pixels_of_the_picture() -> None:
    sizes = [(21, 13), (5, 7), (8, 8)]
    check_each(product(sizes, ["stretch", "fit", "crop"], [8, 4, 2]), check_classes)


def check_classes(case: tuple[tuple[int, int], str, int]) -> None:
    size, resize, rows = case
    maps = scores(1, 3, rows, rows)
    geometry = place_image(ImageConfig.model_validate({"resize": resize}), size, (8, 8))
    expected = expected_classes(maps[0], geometry)
    ((found,),) = task((None, 3, rows, rows)).predict([maps], [geometry], {"mask": "array"})
    np.testing.assert_array_equal(found.mask, expected)
    ((coded,),) = task((None, 3, rows, rows)).predict([maps], [geometry], {})
    assert coded.mask is None
    assert {region["index"] for region in coded.regions} == set(expected[expected >= 0].tolist())
    for region in coded.regions:
        mask = expected == region["index"]
        np.testing.assert_array_equal(decode_counts(region["rle"]["counts"], mask.shape), mask)
        places = np.argwhere(mask)
        (top, left), (bottom, right) = places.min(axis=0), places.max(axis=0) + 1
        assert (region["area"], region["box"]) == (mask.sum(), (left, top, right, bottom))
        assert region["label"] == LABELS[region["index"]]


def test_as_pytorch_interpolates() -> None:
    torch = pytest.importorskip("torch")
    maps = scores(2, 3, 8, 8)
    geometries = [
        ImageGeometry(33, 20, (8 / 33, 8 / 20), (0, 0)),
        ImageGeometry(6, 50, (8 / 6, 8 / 50), (0, 0)),
    ]
    found = task().predict([maps], geometries, {"mask": "array"})
    for item, one, geometry in zip(maps, found, geometries, strict=True):
        size = (geometry.height, geometry.width)
        large = torch.nn.functional.interpolate(torch.from_numpy(item)[None], size, mode="bilinear")
        np.testing.assert_array_equal(one[0].mask, large[0].argmax(0).numpy())


def test_a_tensor_is_answered_in_the_size_of_the_output() -> None:
    maps = scores(1, 3, 4, 6)
    ((found,),) = task(image=None, shape=None).predict([maps], (), {"mask": "array"})
    np.testing.assert_array_equal(found.mask, maps[0].argmax(axis=0))
    assert (found.width, found.height) == (6, 4)


def test_palette_picture() -> None:
    maps = scores(1, 3, 8, 8)
    geometry = place_image(ImageConfig(resize="crop"), (20, 8), (8, 8))
    ((found,),) = task().predict([maps], [geometry], {"mask": "png"})
    image = Image.open(BytesIO(b64decode(found.mask)))
    expected = expected_classes(maps[0], geometry)
    assert image.mode == "P"
    np.testing.assert_array_equal(np.asarray(image), np.where(expected < 0, 255, expected))
    assert np.asarray(image.convert("RGBA"))[0, 0].tolist()[3] == 0  # not shown to the model
    assert tuple(image.getpalette()[3:6]) == COLOURS[1]  # type: ignore[index]
    assert all("rle" not in region for region in found.regions)


@pytest.mark.parametrize(("activation", "level"), [("sigmoid", 0.0), ("threshold", 0.5)])
def test_masks_may_overlap(activation: str, level: float) -> None:
    maps = scores(1, 3, 8, 8)
    model = task(activation=activation)
    ((found,),) = model.predict([maps], (), {})
    for region in found.regions:
        mask = decode_counts(region["rle"]["counts"], (8, 8))
        np.testing.assert_array_equal(mask, maps[0, region["index"]] >= level)
    ((shown,),) = model.predict([maps], (), {"mask": "array"})
    best = np.where((maps[0] >= level).any(axis=0), maps[0].argmax(axis=0), -1)
    np.testing.assert_array_equal(shown.mask, best)


def test_a_threshold_where_classes_exclude_each_other_is_refused() -> None:
    with pytest.raises(ServiceError) as caught:
        task().predict([scores(1, 3, 8, 8)], (), {"threshold": 0.7})
    assert (caught.value.status, caught.value.code) == (422, "invalid_parameter")


def test_threshold_of_the_request() -> None:
    maps = np.array([-3, 0, 0.5, 3], np.float32).reshape(1, 1, 2, 2)
    model = task((1, 1, 2, 2), activation="sigmoid", labels=["ink"], threshold=0.6)
    areas = [
        sum(region["area"] for region in model.predict([maps], (), {"threshold": threshold})[0][0].regions)
        for threshold in (None, 0.01, 0.5, 0.9, 0.99)
    ]
    assert areas == [2, 4, 3, 1, 0]


def test_an_output_of_classes() -> None:
    classes = np.array([[[0, 2], [1, 1]]], np.int64)
    model = task((None, 2, 2), "i64", background=0)
    ((found,),) = model.predict([classes], [ImageGeometry(4, 4, (2.0, 2.0), (0, 0))], {"mask": "array"})
    np.testing.assert_array_equal(found.mask, np.kron(classes[0], np.ones((2, 2), int)))
    assert [region["index"] for region in found.regions] == [1, 2]


def test_scores_that_are_no_numbers() -> None:
    maps = scores(2, 3, 8, 8)
    maps[1, 0, 0, 0] = np.nan
    found = task().predict([maps], (), {})
    assert [len(item) for item in found] == [1, 0]
    assert "item 1 of the batch" in (task().remark(found) or "")
    assert task().remark(found[:1]) is None


def test_a_class_that_is_ruled_out_by_minus_infinity() -> None:
    maps = scores(1, 3, 8, 8)
    maps[0, 1] = 9
    maps[0, 1, :, 4:] = -np.inf
    geometry = place_image(ImageConfig(resize="fit"), (21, 13), (8, 8))
    ((found,),) = task().predict([maps], [geometry], {"mask": "array"})
    low = np.where(np.isinf(maps), -1e20, maps)
    np.testing.assert_array_equal(found.mask, expected_classes(low[0], geometry))
    assert {0, 1, 2} <= set(np.unique(found.mask))
    ((alone,),) = task(activation="sigmoid").predict([maps], [geometry], {})
    assert any(region["index"] == 1 for region in alone.regions)


def test_pixels_without_a_highest_score_make_no_mask() -> None:
    for value in (np.inf, -np.inf, np.nan):
        maps = scores(1, 3, 8, 8)
        maps[0, :, 2, 2] = value
        assert task().predict([maps], (), {}) == [[]]
    maps[0, :, 2, 2] = -np.inf
    ((found,),) = task(activation="sigmoid").predict([maps], (), {"mask": "array"})
    assert found.mask[2, 2] == -1


def test_boxes_are_drawn_where_there_are_no_masks() -> None:
    maps = np.full((1, 3, 8, 8), -1, np.float32)
    maps[0, 1, 2:, 2:] = 1
    maps[0, 0, :, :2] = maps[0, 0, :2] = 1
    model = task(background=0)
    geometry = ImageGeometry(400, 400, (0.02, 0.02), (0, 0))
    (found,) = model.predict([maps], [geometry], {"mask": "none"})
    drawing = Drawing(np.zeros((400, 400, 3), np.uint8), (400, 400))
    model.draw(drawing, found)
    pixels = np.asarray(Image.open(BytesIO(drawing.encode())))
    left, top, right, bottom = found[0].regions[0]["box"]
    assert tuple(pixels[bottom - 1, (left + right) // 2]) == COLOURS[1]
    assert not pixels[(top + bottom) // 2, (left + right) // 2].any()


@pytest.mark.parametrize("form", ["rle", "png", "array"])
def test_masks_of_a_picture_that_is_drawn_smaller(form: str) -> None:
    maps = np.full((1, 3, 8, 8), -1, np.float32)
    maps[0, 1, 3:, 5:] = 1
    maps[0, 0] = -0.5
    model = task(background=0)
    (found,) = model.predict([maps], [ImageGeometry(400, 800, (0.02, 0.01), (0, 0))], {"mask": form})
    drawing = Drawing(np.zeros((200, 100, 3), np.uint8), (400, 800))
    model.draw(drawing, found)
    pixels = np.asarray(Image.open(BytesIO(drawing.encode())).convert("L")) > 0
    left, top, right, bottom = (value // 4 for value in found[0].regions[0]["box"])
    assert pixels[top + 1 : bottom, left + 1 : right].mean() > 0.9
    assert not pixels[: top - 1].any()
    assert not pixels[:, : left - 1].any()


@pytest.mark.parametrize("form", ["rle", "png", "array"])
def test_masks_are_drawn(form: str) -> None:
    maps = np.full((1, 3, 8, 8), -1, np.float32)
    maps[0, 1, :, :4] = 1
    maps[0, 0, :, 4:] = 1
    model = task(background=0)
    (found,) = model.predict([maps], (), {"mask": form})
    drawing = Drawing(np.zeros((8, 8, 3), np.uint8), (8, 8))
    model.draw(drawing, found)
    pixels = np.asarray(Image.open(BytesIO(drawing.encode())))
    assert (pixels[:, :4] == pixels[0, 0]).all()
    assert pixels[0, 0].any()
    assert not pixels[:, 4:].any()


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"shape": (None, 4, 8, 8)}, "labels"),
        ({"shape": (None, 3)}, "segmentation.output"),
        ({"shape": (None, 1, 8, 8)}, "segmentation.activation"),
        ({"output": "mask"}, "segmentation.output"),
        ({"dtype": "c64"}, "segmentation.output"),
    ],
)
def test_models_that_do_not_fit(keys: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        task(**keys)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("output", "parameters", "code"),
    [
        (np.zeros((1, 3), np.float32), {}, "no_mask"),
        (np.zeros((1, 3, 0, 4), np.float32), {}, "no_mask"),
        (np.zeros((1, 1, 4, 4), np.float32), {}, "no_mask"),
        (np.full((1, 4, 4), 300), {"mask": "png"}, "no_mask"),
    ],
)
def test_outputs_of_other_shapes(output: Array, parameters: dict[str, Any], code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        task(None).predict([output], (), parameters)
    assert caught.value.code == code


def test_arrays_of_many_pixels_are_refused() -> None:
    with pytest.raises(ServiceError) as caught:
        task().predict(
            [scores(1, 3, 8, 8)], [ImageGeometry(3000, 2000, (0.002, 0.004), (0, 0))], {"mask": "array"}
        )
    assert (caught.value.status, caught.value.code) == (413, "response_too_large")


def test_regions_have_the_fields_of_their_view() -> None:
    ((found,),) = task().predict([scores(1, 3, 8, 8)], [], {"mask": "rle"})
    assert found.regions
    assert all(region.keys() == RegionView.model_fields.keys() for region in found.regions)


def test_masks_of_many_classes_of_a_large_picture_are_refused() -> None:
    picture = ImageGeometry(10_000, 10_000, (0.0008, 0.0008), (0, 0))
    with pytest.raises(ServiceError, match="smaller picture"):
        task(activation="sigmoid").predict([scores(1, 3, 8, 8)], [picture], {})
    many = [str(index) for index in range(30)]
    with pytest.raises(ServiceError, match="100000000 pixels for 30 classes are too many") as caught:
        task((None, 30, 8, 8), labels=many).predict([scores(1, 30, 8, 8)], [picture], {})
    assert caught.value.details["limit"] == MAX_SCORES


@pytest.mark.parametrize("strip", [1, 30, 100])
def test_strips_make_no_difference(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    geometry = place_image(ImageConfig(resize="fit"), (21, 13), (8, 8))
    whole = task().predict([scores(1, 3, 8, 8)], [geometry], {"mask": "array"})
    monkeypatch.setattr("service.tasks.score_map._STRIP_SCORES", strip)
    parts = task().predict([scores(1, 3, 8, 8)], [geometry], {"mask": "array"})
    np.testing.assert_array_equal(parts[0][0].mask, whole[0][0].mask)
