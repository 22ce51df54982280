"""Detection against what PyTorch makes of the same outputs, and heads that are distinguished or refused."""

import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import AsyncClient
from PIL import Image

from engine import Array, Port, RuntimeOperator, pnnx
from service.config.model_config import ModelConfig, ModelConfigError
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.tasks import TaskModel, open_task
from service.tasks.detection import Detected, Detection
from tests.examples.conftest import serving
from tests.golden.network_data import DATA, arrays, open_network

pytestmark = pytest.mark.anyio
GOLDEN = Path(__file__).parents[2] / "golden" / "detection.npz"
LABELS = ["a", "b", "c"]
ANCHORS = ((10, 13, 16, 30, 33, 23), (30, 61, 62, 45, 59, 119), (116, 90, 156, 198, 373, 326))
RAW = {"anchors": [list(sizes) for sizes in ANCHORS]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def golden(name: str) -> Array:
    with np.load(GOLDEN) as archive:
        return np.asarray(archive[name])


def port(*shape: int | None, name: str = "out") -> Port:
    return Port(name, name, shape, "f32")


def config(labels: Sequence[str] | None = LABELS, **keys: Any) -> ModelConfig:
    values = {"task": "detection", "detection": {"max_detections": 1000, **keys}}
    return ModelConfig.model_validate(values | ({} if labels is None else {"labels": list(labels)}))


def detection(
    outputs: Sequence[Port], size: tuple[int | None, int | None] = (64, 96), **keys: Any
) -> Detection:
    task = open_task(TaskModel(config(**keys), [port(None, 3, *size, name="in")], outputs))
    assert isinstance(task, Detection)
    return task


def check(found: Sequence[Sequence[Detected]], name: str) -> None:
    """Compare boxes with what PyTorch found."""
    for item, boxes in enumerate(found):
        wanted = golden(f"{name}/{item}")
        assert len(boxes) == len(wanted) > 3
        assert [one.index for one in boxes] == wanted[:, 5].astype(int).tolist()
        assert [one.label for one in boxes] == [LABELS[one.index] for one in boxes]
        np.testing.assert_allclose([one.probability for one in boxes], wanted[:, 4], rtol=1e-4)
        np.testing.assert_allclose([one.box for one in boxes], wanted[:, :4], rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("name", ["yolov5_moduleop", "yolov5"])
def test_yolov5(name: str) -> None:
    graph = open_network(name)
    model = TaskModel(config(), graph.inputs, graph.outputs, graph.operators)
    task = open_task(model)
    found = task.predict(graph.forward(arrays(name, "other", "in")), (), {})
    assert found is not None
    check(found, "yolov5")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "form", ["(batch, anchors, rows, columns, values)", "(batch, channels, rows, columns)"]
)
def test_yolov5_raw(form: str) -> None:
    graph = open_network("yolov5_raw")
    outputs = graph.forward([arrays("yolov5_moduleop", "other", "in")[0]])
    ports = [port(None, 3, side, side, 8) for side in (8, 4, 2)]
    if "channels" in form:
        outputs = [one.transpose(0, 1, 4, 2, 3).reshape(2, 24, *one.shape[2:4]) for one in outputs]
        ports = [port(None, 24, side, side) for side in (8, 4, 2)]
    task = detection(ports, (64, 64), **RAW)
    check(task.predict(outputs, (), {}), "yolov5")
    backwards = detection(ports[::-1], (64, 64), **RAW)
    check(backwards.predict(outputs[::-1], (), {}), "yolov5")


@pytest.mark.parametrize(
    ("constants", "problem"),
    [
        ([np.array(ANCHORS).reshape(3, 3, 2)], ""),
        ([np.array(ANCHORS).reshape(3, 3, 2) / np.array([8, 16, 32]).reshape(3, 1, 1)], ""),
        ([np.array(ANCHORS).reshape(3, 1, 3, 1, 1, 2)[::-1], np.ones((3, 3, 4))], ""),
        ([np.array(sizes).reshape(1, 3, 1, 1, 2) for sizes in ANCHORS], ""),
        ([np.broadcast_to(np.array(one).reshape(1, 3, 1, 1, 2), (1, 3, 8, 8, 2)) for one in ANCHORS], ""),
        ([], "the file does not hold them"),
        ([np.array(ANCHORS).reshape(3, 3, 2) - 20], "the file does not hold them"),
        ([np.array(ANCHORS).reshape(3, 3, 2) / 8], "the file does not hold them"),
        ([np.array(ANCHORS).reshape(3, 3, 2), np.full((3, 3, 2), 50.0)], "the file holds several that fit"),
    ],
)
def test_anchors_that_stand_in_the_file(constants: list[Array], problem: str) -> None:
    graph = open_network("yolov5_raw")
    outputs = graph.forward([arrays("yolov5_moduleop", "other", "in")[0]])
    ports = [port(None, 3, side, side, 8) for side in (8, 4, 2)]
    operators = [constant(str(index), array) for index, array in enumerate(constants)]
    model = TaskModel(config(), [port(None, 3, 64, 64, name="in")], ports, operators)
    if problem:
        with pytest.raises(ModelConfigError, match=problem):
            open_task(model)
    else:
        found = open_task(model).predict(outputs, (), {})
        check(found, "yolov5")  # type: ignore[arg-type]


@pytest.mark.parametrize("coarsest_first", [False, True])
def test_anchors_in_cells_are_in_the_order_of_the_maps(coarsest_first: bool) -> None:
    """What is found is the same as with the anchors in `model.toml`, though those of coarse maps are fewer cells."""
    graph = open_network("yolov5_raw")
    outputs = graph.forward([arrays("yolov5_moduleop", "other", "in")[0]])
    ports = [port(None, 3, side, side, 8) for side in (8, 4, 2)]
    pixels = np.array([[20, 25, 30, 24, 40, 44], [40, 44, 50, 40, 56, 60], [60, 64, 72, 70, 80, 90]], float)
    cells = pixels.reshape(3, 3, 2) / np.array([8, 16, 32]).reshape(3, 1, 1)
    if coarsest_first:
        outputs, ports, cells = outputs[::-1], ports[::-1], cells[::-1]
    given = detection(ports, (64, 64), anchors=pixels.tolist()).predict(outputs, (), {})
    model = TaskModel(config(), [port(None, 3, 64, 64, name="in")], ports, [constant("cells", cells)])
    assert open_task(model).predict(outputs, (), {}) == given


def constant(name: str, array: Array) -> RuntimeOperator:
    attribute = pnnx.Attribute.from_array(array.astype(np.float32))
    return RuntimeOperator(pnnx.Operator("pnnx.Attribute", name, attrs={"data": attribute}), 0)


@pytest.mark.parametrize(
    "form", ["maps", "joined", "decoded", "apart", "joined, cells first", "decoded, cells first"]
)
def test_yolov8(form: str) -> None:
    maps = [golden(f"yolov8/map_{index}") for index in range(3)]
    outputs = {
        "apart": [*(one[:, :64] for one in maps), *(one[:, 64:] for one in maps)],
        "joined, cells first": [
            np.concatenate([one.reshape(2, 67, -1) for one in maps], axis=2).transpose(0, 2, 1)
        ],
        "decoded, cells first": [golden("yolov8/decoded").transpose(0, 2, 1)],
        "maps": maps,
        "joined": [np.concatenate([one.reshape(2, 67, -1) for one in maps], axis=2)],
        "decoded": [golden("yolov8/decoded"), *maps],
    }[form]
    task = detection([port(None, *one.shape[1:]) for one in outputs])
    check(task.predict(outputs, (), {}), "yolov8")


def test_parameters_of_a_request() -> None:
    task = detection([port(None, 7, 126)])
    outputs = [golden("yolov8/decoded")]
    every = task.predict(outputs, (), {"confidence": 0.1, "iou": 1.0})[0]
    assert len(every) > len(task.predict(outputs, (), {})[0])
    assert len(task.predict(outputs, (), {"max_detections": 2})[0]) == 2
    assert all(one.probability > 0.9 for one in task.predict(outputs, (), {"confidence": 0.9})[0])
    agnostic = task.predict(outputs, (), {"class_agnostic": True, "iou": 0.2})[0]
    assert len(agnostic) < len(task.predict(outputs, (), {"iou": 0.2})[0])


@pytest.mark.parametrize("head", ["yolov5", "yolov8"])
def test_one_object_has_one_box_where_classes_exclude_each_other(head: str) -> None:
    """Three boxes about one place, of which "b" is the most probable, and one elsewhere."""
    objects = [  # centre and size; class; probability
        ((40, 30, 20, 20), 0, 0.6),
        ((41, 30, 20, 20), 1, 0.8),  # shares 19 * 20 of 420 pixels with the one before: an IoU of 0.905
        ((45, 30, 20, 20), 2, 0.7),  # an IoU of 16 / 24 with "b"
        ((10, 50, 10, 10), 0, 0.5),
    ]
    rows = np.zeros((1, 126, 8 if head == "yolov5" else 7), np.float32)
    for row, (place, index, probability) in zip(rows[0], objects, strict=False):
        row[:4] = place
        row[4] = 1  # objectness, of YOLOv5 only: a class is written over it otherwise
        row[-3:] = 0
        row[-3 + index] = probability
    outputs = [rows if head == "yolov5" else rows.transpose(0, 2, 1)]
    ports = [port(None, *outputs[0].shape[1:])]

    def labels(task: Detection, **parameters: Any) -> list[str]:
        return [one.label for one in task.predict(outputs, (), parameters)[0]]

    within = detection(ports, head=head, iou=0.6)
    across = detection(ports, head=head, iou=0.6, class_agnostic=True)
    assert labels(within) == ["b", "c", "a", "a"]
    assert labels(across) == ["b", "a"]
    assert labels(across, iou=0.7) == ["b", "c", "a"]
    assert labels(within, class_agnostic=True) == ["b", "a"]
    assert labels(across, class_agnostic=False) == ["b", "c", "a", "a"]


def test_boxes_are_those_of_the_original_picture() -> None:
    rows = np.zeros((1, 7, 126), np.float32)
    rows[0, :, 5] = [48, 32, 20, 10, 0, 0.75, 0]  # centre and size in the input
    rows[0, :, 9] = [0, 0, 40, 40, 0.5, 0, 0]
    geometry = ImageGeometry(960, 480, (0.1, 0.1), (0, 8))
    first, second = detection([port(None, 7, 126)]).predict([rows], [geometry], {})[0]
    assert (first.label, first.index, first.probability) == ("b", 1, 0.75)
    assert first.box == pytest.approx((380, 190, 580, 290))
    assert second.box == pytest.approx((0, 0, 200, 120)), "clipped to the picture"


def test_numbers_that_are_none_are_no_boxes() -> None:
    rows = np.full((1, 7, 126), np.nan, np.float32)
    rows[0, :, 3] = [np.inf, 2, 3, 4, 0.9, 0, 0]
    assert detection([port(None, 7, 126)]).predict([rows], (), {}) == [[]]
    logits = np.full((1, 67, 126), np.nan, np.float32)
    logits[0, 64:] = 5  # the classes are sure, and the distances are no numbers
    assert detection([port(None, 67, 126)], head="yolov8-raw").predict([logits], (), {}) == [[]]


@pytest.mark.parametrize(
    ("outputs", "keys", "key", "text"),
    [
        ([port(1, 10)], {}, "head", "do not fit any head that is known for 3 labels"),
        ([port(1, 7, 126)], {"labels": ["a", "b"]}, "head", "do not fit any head that is known for 2 labels"),
        ([port(1, 126, 85)], {"labels": None}, "head", "may be those of yolov5 or yolov8"),
        ([port(1, 84, 126)], {"labels": None}, "head", "may be those of yolov8 or yolov8-raw"),
        ([port(1, 7, 126)], {"head": "yolov5"}, "head", "do not fit a head yolov5"),
        ([port(1, 24, 8, 12), port(1, 24, 4, 6)], {}, "anchors", "are not given"),
        ([port(1, 24, 8, 12), port(1, 24, 4, 6)], RAW, "anchors", "there are 2 maps, and anchors for 3"),
        ([port(1, 7, 126)], {"output": "x"}, "output", "the graph has no output 'x'; expected out"),
        ([port(1, 67, None, None), port(1, 67, None, None)], {}, "strides", "leaves the sizes"),
        ([], {}, "head", "the outputs none do not fit"),
    ],
)
def test_graphs_without_such_a_head(outputs: list[Port], keys: dict[str, Any], key: str, text: str) -> None:
    with pytest.raises(ModelConfigError, match=re.escape(text)) as caught:
        detection(outputs, **keys)
    assert caught.value.key == f"detection.{key}"


@pytest.mark.parametrize("shape", [(1, 7), (7,), (1, 7, 126, 1)])
def test_outputs_of_a_request_that_are_no_boxes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ServiceError) as caught:
        detection([port(None, 7, 126)]).predict([np.zeros(shape, np.float32)], (), {})
    assert (caught.value.status, caught.value.code) == (422, "no_boxes")


def write_model(root: Path) -> None:
    folder = root / "scenes"
    folder.mkdir()
    for suffix in ("param", "bin"):
        source = DATA / "yolov5_moduleop" / f"yolov5_moduleop.pnnx.{suffix}"
        (folder / source.name).write_bytes(source.read_bytes())
    (folder / "model.toml").write_text(
        'task = "detection"\nlabels = ["a", "b", "c"]\n[image]\nsize = [64, 64]\nresize = "fit"\n'
    )


def png(width: int, height: int) -> bytes:
    target = BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(target, "PNG")
    return target.getvalue()


async def post(client: AsyncClient, query: str = "", **headers: str) -> Any:
    return await client.post(
        f"/infer{query}", content=png(640, 320), headers={"Content-Type": "image/png"} | headers
    )


async def test_a_picture_is_answered_with_boxes_and_drawn(tmp_path: Path) -> None:
    write_model(tmp_path)
    async with serving(tmp_path) as client:
        response = (await post(client, "?max_detections=5&trace=off")).json()
        assert response["images"] == [
            {"input": "pnnx_input_0", "width": 640, "height": 320, "scale": [0.1, 0.1], "offset": [0, 16]}
        ]
        assert "data" not in response["outputs"][0]
        assert len(response["predictions"][0]) == 5
        for one in response["predictions"][0]:
            left, top, right, bottom = one["box"]
            assert 0 <= left <= right <= 640
            assert 0 <= top <= bottom <= 320
        whole = (await post(client, "?outputs=true&trace=off")).json()
        assert len(whole["outputs"][0]["data"][0]) == 252
        for drawn in (await post(client, "?render=true"), await post(client, Accept="image/png")):
            assert drawn.headers["content-type"] == "image/png"
            picture = Image.open(BytesIO(drawn.content))
            assert picture.size == (640, 320)
            colours = {colour for _, colour in picture.getcolors(1 << 20) or ()}
            assert (230, 159, 0) in colours or (86, 180, 233) in colours or (0, 158, 115) in colours


async def test_a_large_picture_is_drawn_that_is_not_scaled_up(tmp_path: Path) -> None:
    write_model(tmp_path)
    config = tmp_path / "scenes" / "model.toml"
    config.write_text(config.read_text() + "scale_up = false\n")
    target = BytesIO()
    Image.new("RGB", (2400, 1800), "white").save(target, "JPEG")
    async with serving(tmp_path) as client:
        drawn = await client.post(
            "/infer?render=true", content=target.getvalue(), headers={"Content-Type": "image/jpeg"}
        )
        assert drawn.status_code == 200, drawn.text
        assert Image.open(BytesIO(drawn.content)).size == (2048, 1536)


async def test_requests_that_cannot_be_drawn_or_read(tmp_path: Path) -> None:
    write_model(tmp_path)
    async with serving(tmp_path) as client:
        tensors = {"inputs": [{"data": np.zeros((1, 3, 64, 64)).tolist()}], "parameters": {"render": True}}
        refused = await client.post("/infer", json=tensors)
        assert (refused.status_code, refused.json()["code"]) == (422, "not_drawable")
        pair = [("a", ("a.png", png(64, 64), "image/png")), ("b", ("b.png", png(64, 64), "image/png"))]
        several = await client.post("/infer?render=true", files=pair)
        assert (several.status_code, several.json()["code"]) == (422, "not_drawable")
        assert "send each picture by itself, or ask for JSON" in several.json()["error"]
        wrong = await post(client, "?confidence=2")
        assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_parameter")
        assert "'confidence' is '2'; expected less than 1" in wrong.json()["error"]
