"""How models of transformers take pictures, in the words of `[image]`."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.config.image_config import ImageConfig
from service.export.picture_processor import read_processor

VIT = {"do_resize": True, "size": {"height": 224, "width": 224}, "resample": 2, "do_rescale": True}
VIT |= {
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.5] * 3,
}
CROPPED = {"do_center_crop": True, "crop_size": {"height": 224, "width": 224}}


@pytest.mark.parametrize(
    ("changed", "size", "keys"),
    [
        ({}, (224, 224), {"resize": "stretch", "resample": "bilinear"}),
        ({"size": 384, "resample": 3}, (384, 384), {"resize": "stretch", "resample": "bicubic"}),
        ({"size": {"height": 64, "width": 32}}, (64, 32), {"resize": "stretch"}),
        ({"size": {"shortest_edge": 256}, **CROPPED}, (224, 224), {"resize": "crop", "shorter_side": 256}),
        (
            {"size": 256, "do_center_crop": True, "crop_size": 224},
            (224, 224),
            {"resize": "crop", "shorter_side": 256},
        ),
        ({**CROPPED}, (224, 224), {"resize": "stretch"}),
        (
            {"size": {"shortest_edge": 224}, "image_processor_type": "LevitImageProcessor", **CROPPED},
            (224, 224),
            {"resize": "crop", "shorter_side": 256},
        ),
        (
            {"size": {"shortest_edge": 224}, "crop_pct": 0.875},
            (224, 224),
            {"resize": "crop", "shorter_side": 256},
        ),
        ({"size": {"shortest_edge": 384}, "crop_pct": 0.875}, (384, 384), {"resize": "stretch"}),
        ({"do_rescale": False}, (224, 224), {"resize": "stretch", "scale": 1.0}),
        ({"rescale_factor": 1 / 127.5}, (224, 224), {"scale": 1 / 127.5}),
        ({"do_flip_channel_order": True}, (224, 224), {"colour": "bgr"}),
        ({"image_mean": 0.5}, (224, 224), {"mean": (0.5,)}),
    ],
)
def test_what_can_be_said(
    tmp_path: Path, changed: dict[str, Any], size: tuple[int, int], keys: dict[str, Any]
) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(VIT | changed))
    processor = read_processor(tmp_path)
    assert processor is not None
    assert (processor.size, processor.notes) == (size, ())
    wanted = {"mean": (0.5, 0.4, 0.3), "std": (0.5, 0.5, 0.5)} | keys
    assert {key: processor.preset.image[key] for key in wanted} == wanted
    ImageConfig.model_validate(
        {"size": list(size)}
        | {k: list(v) if isinstance(v, tuple) else v for k, v in processor.preset.image.items()}
    )


def test_numbers_that_are_not_normalized_have_no_mean(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(VIT | {"do_normalize": False}))
    processor = read_processor(tmp_path)
    assert processor is not None
    assert processor.preset.image == {"resize": "stretch", "resample": "bilinear"}


@pytest.mark.parametrize(
    ("changed", "size", "note"),
    [
        (
            {"size": {"height": 256, "width": 256}, **CROPPED},
            (224, 224),
            "stretched before their centre is cut",
        ),
        ({"size": {"shortest_edge": 800, "longest_edge": 1333}}, (800, 800), "keep their proportions"),
        ({"do_resize": False}, (224, 224), "expected to be 224 by 224 pixels"),
        ({"size": {"longest_edge": 1024}}, None, "no size of their own; give --input"),
        ({"rescale_offset": True}, (224, 224), "rescale_offset of its pictures cannot be said"),
    ],
)
def test_what_cannot_be_said_is_noted(
    tmp_path: Path, changed: dict[str, Any], size: tuple[int, int] | None, note: str
) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(VIT | changed))
    processor = read_processor(tmp_path)
    assert processor is not None
    assert processor.size == size
    assert [note in each for each in processor.notes] == [True]


def test_a_processor_may_hold_it(tmp_path: Path) -> None:
    assert read_processor(tmp_path) is None
    (tmp_path / "preprocessor_config.json").write_text("[")
    assert read_processor(tmp_path) is None
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": VIT}))
    processor = read_processor(tmp_path)
    assert processor is not None
    assert processor.size == (224, 224)
