"""How models of timm take pictures, in the words of `[image]`."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from service.export import ExportError
from service.export.opening import open_source, source_name
from service.export.timm_model import image_keys, is_timm_folder

CONFIG = {
    "input_size": (3, 224, 224),
    "interpolation": "bicubic",
    "mean": (0.5, 0.4, 0.3),
    "std": (0.2, 0.2, 0.2),
    "crop_pct": 0.95,
    "crop_mode": "center",
}


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        ({}, {"resize": "crop", "shorter_side": 235, "resample": "bicubic"}),
        ({"crop_pct": 1.0}, {"resize": "crop", "shorter_side": 224}),
        ({"crop_pct": 1.0, "crop_mode": "squash"}, {"resize": "stretch"}),
        ({"input_size": (3, 224, 112)}, {"resize": "crop", "crop_fraction": 0.95}),
        ({"interpolation": "random"}, {"resize": "crop", "shorter_side": 235}),
    ],
)
def test_what_can_be_said(changed: dict[str, Any], keys: dict[str, Any]) -> None:
    found, notes = image_keys(CONFIG | changed)
    filters = {} if "interpolation" in changed else {"resample": "bicubic"}
    assert found == {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.2, 0.2)} | filters | keys
    assert notes == []


@pytest.mark.parametrize("mode", ["squash", "border"])
def test_another_way_to_cut_is_noted(mode: str) -> None:
    assert f"by '{mode}'" in image_keys(CONFIG | {"crop_mode": mode})[1][0]


def test_folders_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_name("timm:resnet50.a1_in1k") == "resnet50.a1_in1k"
    assert not is_timm_folder(tmp_path)
    for config, is_timm in (
        ({"architecture": "resnet18"}, True),
        ({"architectures": ["A"]}, False),
        ([], False),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert is_timm_folder(tmp_path) is is_timm
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ExportError, match="timm cannot be imported .* an export needs it: pip install timm$"):
        open_source("timm:resnet18")
