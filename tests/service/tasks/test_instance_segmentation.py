import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Array, Port
from service.config.model_config import ModelConfig, ModelConfigError
from service.errors import ServiceError
from service.images.drawing import Drawing
from service.images.geometry import ImageGeometry
from service.tasks import TaskModel, open_task
from service.tasks.instance_segmentation import Instance, InstanceSegmentation, _count_runs
from service.tasks.run_lengths import decode_counts, find_runs
from tests.cases import check_each

GOLDEN = Path(__file__).parents[2] / "golden" / "detection.npz"


def golden(name: str) -> Array:
    with np.load(GOLDEN) as archive:
        return np.asarray(archive[name])


def task(*outputs: tuple[int | None, ...], **keys: Any) -> InstanceSegmentation:
    values = {
        "task": "instance-segmentation",
        "labels": ["a", "b", "c"],
        "instance-segmentation": {"max_detections": 1000, **keys},
    }
    shapes = outputs or ((None, 11, 126), (None, 67, 8, 12), (None, 4, 16, 24))
    ports = [Port(f"out{index}", str(index), shape, "f32") for index, shape in enumerate(shapes)]
    model = TaskModel(ModelConfig.model_validate(values), [Port("in", "in", (None, 3, 64, 96), "f32")], ports)
    opened = open_task(model)
    assert isinstance(opened, InstanceSegmentation)
    return opened


def outputs() -> list[Array]:
    return [golden("instances/decoded"), golden("yolov8/map_0"), golden("instances/prototypes")]


def mask_of(one: Instance) -> Array:
    assert one.mask is not None
    return decode_counts(one.mask["counts"], one.mask["size"])


def undecoded(form: str) -> list[Array]:
    """The maps that the decoded boxes were made of, with their coefficients, and the prototypes."""
    maps = [golden(f"yolov8/map_{index}") for index in range(3)]
    coefficients, prototypes = golden("instances/decoded")[:, 7:], golden("instances/prototypes")
    ends = np.cumsum([one.shape[2] * one.shape[3] for one in maps])[:-1]
    pieces = np.split(coefficients, ends, axis=2)
    split = [part.reshape(2, 4, *one.shape[2:]) for part, one in zip(pieces, maps, strict=True)]
    return {
        "decoded": outputs(),
        "decoded, cells first": [golden("instances/decoded").transpose(0, 2, 1), prototypes],
        "coefficients apart": [*maps, coefficients, prototypes],
        "coefficients as maps": [prototypes, *split, *maps],
        "one set of maps": [
            *(np.concatenate(pair, axis=1) for pair in zip(maps, split, strict=True)),
            prototypes,
        ],
    }[form]


FORMS = ["decoded", "decoded, cells first", "coefficients apart", "coefficients as maps", "one set of maps"]


@pytest.mark.parametrize("form", FORMS)
def test_masks_that_pytorch_makes(form: str) -> None:
    arrays = undecoded(form)
    for item, instances in enumerate(task(*(one.shape for one in arrays)).predict(arrays, (), {})):
        wanted = golden(f"instances/{item}")
        masks = np.unpackbits(golden(f"instances/masks/{item}"))[: len(wanted) * 64 * 96]
        assert [one.index for one in instances] == wanted[:, 5].astype(int).tolist()
        for one, mask in zip(instances, masks.reshape(-1, 64, 96).astype(bool), strict=True):
            found = mask_of(one)
            assert one.area == found.sum()
            assert (found != mask).sum() <= 2 + mask.sum() // 200


def test_masks_are_those_of_the_original_picture() -> None:
    rows = np.zeros((1, 11, 126), np.float32)
    rows[0, :, 0] = [48, 32, 48, 32, 0.9, 0, 0, 1, 0, 0, 0]
    prototypes = np.full((1, 4, 16, 24), -1, np.float32)
    prototypes[0, 0, :, :12] = 1  # the left half of the input
    geometry = ImageGeometry(960, 480, (0.1, 0.1), (0, 8))
    (one,) = task().predict([rows, golden("yolov8/map_0"), prototypes], [geometry], {})[0]
    mask = mask_of(one)
    assert mask.shape == (480, 960)
    assert one.box == pytest.approx((240, 80, 720, 400))
    rows_of, columns_of = np.nonzero(mask)
    assert (columns_of.min(), rows_of.min(), rows_of.max()) == (240, 80, 399)
    assert abs(columns_of.max() - 479) <= 1
    drawing = Drawing(np.zeros((48, 96, 3), np.uint8), (960, 480))
    task().draw(drawing, [one])
    pixels = np.asarray(drawing._image)
    assert pixels[24, 36].any()
    assert not pixels[24, 60].any()


@pytest.mark.parametrize(("keys", "labels"), [({}, ["a", "b"]), ({"class_agnostic": True}, ["a"])])
def test_one_object_has_one_mask_where_classes_exclude_each_other(
    keys: dict[str, bool], labels: list[str]
) -> None:
    rows = np.zeros((1, 11, 126), np.float32)
    rows[0, :, 0] = [48, 32, 48, 32, 0.9, 0, 0, 1, 0, 0, 0]
    rows[0, :, 1] = [48, 32, 48, 30, 0, 0.8, 0, 1, 0, 0, 0]  # an IoU of 30 / 32
    arrays = [rows, golden("yolov8/map_0"), np.ones((1, 4, 16, 24), np.float32)]
    assert [one.label for one in task(**keys).predict(arrays, (), {})[0]] == labels


def test_masks_of_boxes_that_reach_beyond_the_input_keep_their_place() -> None:
    rows = np.zeros((1, 11, 126), np.float32)
    rows[0, :, 0] = [90, 32, 30, 32, 0.9, 0, 0, 1, 0, 0, 0]
    prototypes = np.full((1, 4, 16, 24), -1, np.float32)
    # up to column 84 of the input, which shows 270 to 1230 of the picture's columns
    prototypes[0, 0, :, :21] = 1
    geometry = ImageGeometry(1500, 640, (0.1, 0.1), (-27, 0))
    (one,) = task().predict([rows, golden("yolov8/map_0"), prototypes], [geometry], {})[0]
    assert one.box == pytest.approx((1020, 160, 1320, 480))
    rows_of, columns_of = np.nonzero(mask_of(one))
    assert (columns_of.min(), rows_of.min(), rows_of.max()) == (1020, 160, 479)
    assert abs(columns_of.max() - 1109) <= 2


def test_boxes_without_masks() -> None:
    (first, *_), _ = task().predict(outputs(), (), {"mask": "none"})
    assert (first.mask, first.area) == (None, None)


def test_masks_of_very_many_pixels_are_refused_before_they_are_made() -> None:
    rows = np.zeros((1, 11, 126), np.float32)
    rows[0, :4] = [[48], [32], [96], [64]]
    rows[0, 4] = np.linspace(0.9, 0.3, 126)
    arrays = [rows, golden("yolov8/map_0")[:1], np.ones((1, 4, 16, 24), np.float32)]
    picture = [ImageGeometry(9600, 6400, (0.01, 0.01), (0, 0))]
    with pytest.raises(ServiceError, match="the maximum is 268435456: ask for mask=none") as caught:
        task(iou=1.0).predict(arrays, picture, {})
    assert (caught.value.status, caught.value.code) == (413, "response_too_large")
    assert len(task(iou=1.0).predict(arrays, picture, {"mask": "none"})[0]) == 126


def test_graphs_of_which_it_is_not_clear_what_their_maps_are() -> None:
    open_maps = [(None, 67, None, None)] * 3 + [(None, 4, None, None)]
    with pytest.raises(ModelConfigError, match="the sizes of maps are dynamic; expected which output"):
        task(*open_maps)
    with pytest.raises(ModelConfigError, match="more than one of the outputs"):
        task((None, 67, 8, 12), (None, 67, 8, 12))
    with pytest.raises(ModelConfigError, match="do not fit any head that is known for 3 labels"):
        task((None, 66, 8, 12), (None, 66, 4, 6), (None, 66, 2, 3), (None, 4, 126), (None, 4, 16, 24))


def test_graphs_without_prototypes() -> None:
    with pytest.raises(ModelConfigError, match="none of the outputs"):
        task((None, 11, 126))
    with pytest.raises(ModelConfigError, match="do not fit any head"):
        task((None, 12, 126), (None, 4, 16, 24))


def test_runs_of_a_part_are_those_of_the_whole_mask() -> None:
    def check(case: tuple[tuple[tuple[int, int], tuple[int, int]], float]) -> None:
        (corner, shape), share = case
        part = np.random.default_rng(0).random(shape) < share
        whole = np.zeros((6, 9), bool)
        whole[corner[1] : corner[1] + shape[0], corner[0] : corner[0] + shape[1]] = part
        np.testing.assert_array_equal(_count_runs(part, corner, (9, 6)), find_runs(whole).counts(1))

    parts = [((0, 0), (6, 9)), ((2, 0), (6, 4)), ((0, 1), (5, 9)), ((3, 2), (2, 1))]
    check_each(product(parts, [0.0, 0.1, 0.5, 0.9, 1.0]), check)


def test_runs_of_a_box_without_pixels() -> None:
    assert _count_runs(np.zeros((0, 0), bool), (3, 2), (9, 6)).tolist() == [54]


def test_a_mask_of_a_large_picture_takes_no_number_for_each_pixel() -> None:
    mask = np.ones((2000, 1000), bool)
    tracemalloc.start()
    _count_runs(mask, (0, 0), (1000, 2000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * mask.size
