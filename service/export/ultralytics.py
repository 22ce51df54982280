"""What Ultralytics writes into its TorchScript files beside the model: `config.txt`, a table in JSON."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.export.input_spec import InputSpec
from service.export.preset import PRESETS, Preset, Value
from service.export.source import Known

CONFIG = "config.txt"
"""The name of the table among the extra files of TorchScript."""

_TASKS = {
    "detect": "detection",
    "segment": "instance-segmentation",
    "pose": "keypoints",
    "classify": "classification",
}
_CENTRE = Preset("the centre of the picture, values from 0 to 1", {"resize": "crop"})


def read_config(text: str) -> Mapping[str, Any]:
    """Return the table; an empty one where the text is none of Ultralytics'."""
    try:
        config = json.loads(text)
    except ValueError:
        return {}
    return config if isinstance(config, dict) and "task" in config and "names" in config else {}


def known_of(config: Mapping[str, Any]) -> Known:
    """Return what a table says of a model."""
    task, names = config["task"], config["names"]
    labels = list(names.values()) if isinstance(names, dict) else names
    known = Known(
        task=_TASKS.get(task, "raw"),
        labels=[str(label) for label in labels] if isinstance(labels, list) else [],
        preset=replace(PRESETS["yolo"], labels=None) if task != "classify" else _CENTRE,
    )
    arguments = config.get("args")
    if config.get("end2end") or (isinstance(arguments, dict) and arguments.get("nms")):
        note = "its boxes are chosen in the model itself, so its task is raw; export it with end2end=False, nms=False"
        return replace(known, task="raw", notes=[note])
    if known.task == "raw":
        return replace(known, notes=[f"there is no task for {task!r} of Ultralytics, so its task is raw"])
    return replace(known, table=_points(config.get("kpt_shape")))


def specs_of(config: Mapping[str, Any], name: str) -> list[InputSpec]:
    """Return the input of a model, whose batch is dynamic; none where the table lacks it."""
    sides, channels = config.get("imgsz"), config.get("channels", 3)
    if not isinstance(sides, list) or len(sides) != 2 or not all(map(_is_size, (*sides, channels))):
        return []
    return [InputSpec((1, channels, *sides), (True, False, False, False), name=name)]


def _points(shape: Any) -> dict[str, Value]:
    is_known = isinstance(shape, list) and len(shape) == 2 and all(map(_is_size, shape))
    return {"points": shape[0], "dimensions": shape[1]} if is_known else {}


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
