"""How a model of transformers takes pictures, as `preprocessor_config.json` says, in the words of `[image]`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.export.preset import Preset, Value

_RESAMPLE = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""Filters in the order of Pillow's numbers for them."""
_PIXEL = 1 / 255
_CONVNEXT_WHOLE = 384
"""ConvNeXt's pictures of this side or more are stretched; smaller ones are the centre of larger ones."""
_LEVIT = 256 / 224
"""LeViT's pictures are cut from such larger ones."""
_LEFT_OUT = ("rescale_offset", "do_pad", "do_thumbnail", "do_align_long_axis")


@dataclass(frozen=True, slots=True)
class PictureProcessor:
    """How pictures are prepared.

    Attributes:
        preset: keys of `[image]`.
        size: height and width of the input; None where they follow from the picture.
        notes: what `[image]` cannot say, a sentence each.
    """

    preset: Preset
    size: tuple[int, int] | None
    notes: tuple[str, ...]


def read_processor(folder: Path) -> PictureProcessor | None:
    """Return how the model in a folder takes pictures; None where no file says so."""
    for name, part in (("preprocessor_config.json", None), ("processor_config.json", "image_processor")):
        try:
            found = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        config = found.get(part) if part is not None and isinstance(found, dict) else found
        if isinstance(config, dict):
            return _processor(config)
    return None


def _processor(config: Mapping[str, Any]) -> PictureProcessor:
    size, keys, notes = _resizing(config)
    resample = config.get("resample", _RESAMPLE.index("bilinear"))
    if isinstance(resample, int) and 0 <= resample < len(_RESAMPLE) and "resize" in keys:
        keys["resample"] = _RESAMPLE[resample]
    if config.get("do_flip_channel_order"):
        keys["colour"] = "bgr"
    scale = config.get("rescale_factor", _PIXEL) if config.get("do_rescale", True) else 1.0
    if abs(scale - _PIXEL) > 1e-9:
        keys["scale"] = scale
    if config.get("do_normalize", True):
        keys |= {
            key: _numbers(config[f"image_{key}"]) for key in ("mean", "std") if config.get(f"image_{key}")
        }
    notes += [f"{key} of its pictures cannot be said in model.toml" for key in _LEFT_OUT if config.get(key)]
    return PictureProcessor(Preset("", keys), size, tuple(notes))


def _resizing(config: Mapping[str, Any]) -> tuple[tuple[int, int] | None, dict[str, Value], list[str]]:
    """Return the size of the input, the keys of `[image]` that lead to it, and notes."""
    is_cropped = bool(config.get("do_center_crop")) and config.get("crop_size") is not None
    cropped = _sides(config.get("crop_size")) if is_cropped else None
    before = config.get("size")
    if isinstance(before, int):  # of older versions
        before = {"shortest_edge": before} if is_cropped else {"height": before, "width": before}
    whole = _sides(before)
    shorter = before.get("shortest_edge") if isinstance(before, dict) else None
    if not config.get("do_resize", True):
        size = cropped or whole
        return (
            size,
            {},
            [] if size is None else [f"its pictures are expected to be {size[0]} by {size[1]} pixels"],
        )
    if isinstance(shorter, int):
        return _from_shorter(config, shorter, cropped)
    if whole is None:
        return cropped, {"resize": "stretch"}, ["its pictures have no size of their own; give --input"]
    if cropped is None or cropped == whole:
        return whole, {"resize": "stretch"}, []
    note = "its pictures are stretched before their centre is cut; model.toml says crop, which keeps their proportions"
    return cropped, {"resize": "crop", "crop_fraction": cropped[0] / whole[0]}, [note]


def _from_shorter(
    config: Mapping[str, Any], shorter: int, cropped: tuple[int, int] | None
) -> tuple[tuple[int, int] | None, dict[str, Value], list[str]]:
    part = config.get("crop_pct")
    kind = str(config.get("image_processor_type", config.get("feature_extractor_type", "")))
    if cropped is not None:
        side = int(shorter * _LEVIT) if kind.startswith("Levit") else shorter
        return cropped, {"resize": "crop", "shorter_side": side}, []
    if isinstance(part, float):
        square = (shorter, shorter)
        if shorter >= _CONVNEXT_WHOLE:
            return square, {"resize": "stretch"}, []
        return square, {"resize": "crop", "shorter_side": int(shorter / part)}, []
    note = (
        f"its pictures keep their proportions, {shorter} pixels at the shorter side; model.toml says crop, and --input "
        "another size"
    )
    return (shorter, shorter), {"resize": "crop"}, [note]


def _sides(size: Any) -> tuple[int, int] | None:
    height, width = (size.get("height"), size.get("width")) if isinstance(size, dict) else (size, size)
    if isinstance(height, int) and isinstance(width, int) and height > 0 and width > 0:
        return height, width
    return None


def _numbers(value: Any) -> tuple[float, ...]:
    return tuple(map(float, value)) if isinstance(value, list) else (float(value),)
