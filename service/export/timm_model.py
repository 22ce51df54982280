"""Models of timm, by name or from a folder that timm wrote, with how they take pictures and what their classes are."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from service.export.errors import ExportError
from service.export.extra import need
from service.export.input_spec import InputSpec
from service.export.preset import Preset, Value, class_names
from service.export.source import Known
from service.export.torch_graph import said_by
from service.export.torch_source import ModuleSource

PREFIX = "timm:"
_INSTALL = "pip install timm"
_FOLDER = "local-dir:"
"""How timm spells a folder in place of a name."""
_IMAGENET = "imagenet-1k"
_FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")


def open_timm(name: str) -> ModuleSource:
    """Return a model of timm with its trained weights.

    Args:
        name: a name that timm has, as `resnet50.a1_in1k`.

    Raises:
        ExportError: there is no such model, or its weights cannot be had.
    """
    timm = need("timm", _INSTALL)
    if not timm.is_model(name):
        known = timm.list_models(f"*{name.partition('.')[0][:5]}*")[:5]
        near = f" (it has {', '.join(known)}, …)" if known else ""
        raise ExportError(
            f"timm {timm.__version__} has no model {name!r}{near}; timm.list_models() lists them"
        )
    return _opened(timm, name, f"{name}, timm")


def open_timm_folder(folder: Path) -> ModuleSource:
    """Return the model of a folder that `timm.models.save_for_hf` or `push_to_hf_hub` wrote.

    Raises:
        ExportError: it cannot be read.
    """
    return _opened(need("timm", _INSTALL), f"{_FOLDER}{folder}", f"{folder.resolve().name}, timm")


def is_timm_folder(folder: Path) -> bool:
    """Return whether a folder is one that timm wrote."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "architecture" in config and "architectures" not in config


def _opened(timm: Any, name: str, title: str) -> ModuleSource:
    try:
        model = timm.create_model(name, pretrained=True).eval().float()
    except Exception as error:  # of the hub, of the file system, of timm
        raise ExportError(
            f"{title}: the weights are not available: {said_by(error)}. Where there is a network, "
            f"timm.models.save_for_hf(timm.create_model({name!r}, pretrained=True), 'folder') writes a folder, which "
            "can be exported elsewhere"
        ) from error
    config = timm.data.resolve_model_data_config(model)
    channels, *sides = config["input_size"]
    spec = InputSpec((1, channels, *sides), (True, False, False, False), name="x")
    keys, notes = image_keys(config)
    labels = _labels(timm, model)
    task = "classification" if model.num_classes else "embedding"
    return ModuleSource(title, model, [spec], known=Known(task, labels, Preset("", keys), notes=notes))


def image_keys(config: Mapping[str, Any]) -> tuple[dict[str, Value], list[str]]:
    """Return the keys of `[image]` for what timm says of a model's pictures, and what they cannot say."""
    height, width = config["input_size"][1:]
    part, mode = config["crop_pct"], config.get("crop_mode", "center")
    keys: dict[str, Value] = {"resize": "crop"}
    notes = []
    if mode == "squash" and part == 1:
        keys["resize"] = "stretch"
    elif height == width:
        keys["shorter_side"] = math.floor(height / part)
    else:
        keys["crop_fraction"] = part
    if mode != "center" and keys["resize"] == "crop":
        notes.append(
            f"timm prepares its pictures by {mode!r}; model.toml says crop, which cuts more of them off"
        )
    if config["interpolation"] in _FILTERS:
        keys["resample"] = config["interpolation"]
    return keys | {key: tuple(map(float, config[key])) for key in ("mean", "std")}, notes


def _labels(timm: Any, model: Any) -> Sequence[str]:
    own = model.pretrained_cfg.get("label_names")
    if own:
        return [str(label) for label in own]
    subset = timm.data.infer_imagenet_subset(model)
    if subset is None:
        return []
    if subset == _IMAGENET:
        return class_names("imagenet")
    info = timm.data.ImageNetInfo(subset)
    return [info.index_to_description(place) for place in range(model.num_classes)]
