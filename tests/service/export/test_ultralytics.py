"""What the table in Ultralytics' files shows."""

import json
from typing import Any

import pytest

from service.export.ultralytics import known_of, read_config, specs_of

CONFIG = {
    "task": "detect",
    "stride": 32,
    "batch": 1,
    "imgsz": [320, 640],
    "names": {"0": "cat", "1": "dog"},
    "args": {"batch": 1, "nms": None, "dynamic": False},
    "channels": 3,
}


def test_a_detector_shows_its_labels_pictures_and_input() -> None:
    config = read_config(json.dumps(CONFIG))
    known = known_of(config)
    assert (known.task, known.labels, known.notes) == ("detection", ["cat", "dog"], ())
    assert known.preset is not None
    assert (known.preset.image["resize"], known.preset.image["pad"]) == ("fit", 114)
    assert [str(spec) for spec in specs_of(config, "x")] == ["(?,3,320,640)f32"]


@pytest.mark.parametrize(
    ("changed", "task", "table"),
    [
        ({"task": "segment"}, "instance-segmentation", {}),
        ({"task": "pose", "kpt_shape": [5, 2]}, "keypoints", {"points": 5, "dimensions": 2}),
        ({"task": "pose", "kpt_shape": "5"}, "keypoints", {}),
        ({"task": "classify"}, "classification", {}),
    ],
)
def test_other_tasks(changed: dict[str, Any], task: str, table: dict[str, int]) -> None:
    known = known_of(CONFIG | changed)
    assert (known.task, known.table) == (task, table)
    assert known.preset is not None
    assert known.preset.image["resize"] == ("crop" if task == "classification" else "fit")


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"task": "obb"}, "no task for 'obb'"),
        ({"end2end": True}, "end2end=False"),
        ({"args": {"nms": True}}, "nms=False"),
    ],
)
def test_what_no_task_takes_is_raw_with_a_note(changed: dict[str, Any], note: str) -> None:
    known = known_of(CONFIG | changed)
    assert known.task == "raw"
    assert note in known.notes[0]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"task": "detect"}'])
def test_a_file_of_others_has_no_table(text: str) -> None:
    assert read_config(text) == {}


@pytest.mark.parametrize("sides", [None, 640, [640], [640, 0], [640, "640"], [True, 640]])
def test_sizes_that_are_none_are_asked_for(sides: object) -> None:
    assert specs_of(CONFIG | {"imgsz": sides}, "x") == []
