"""`model.toml` of an export: what the source shows, and what the user says in its place."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Array
from service.export.description import describe
from service.export.input_spec import InputSpec
from service.export.preset import Preset
from service.export.source import Known
from service.export.wishes import Wishes
from tests.service.export.stand_in import LinearSource

PICTURE = InputSpec((1, 3, 8, 8), (True, False, False, False))
IDS = InputSpec((1, 16), (True, True), "i64", "input_ids")
SCORES = np.array([[1, 2, 3]], np.float32)


def described(
    folder: Path, known: Known, spec: InputSpec, output: Array = SCORES, wishes: Wishes | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Return what is written, and the notes."""
    source = LinearSource()
    source.known = known
    notes = describe(folder, source, [spec], [output], wishes or Wishes())
    return tomllib.loads((folder / "model.toml").read_text()), notes


def test_what_the_source_says_of_pictures(tmp_path: Path) -> None:
    preset = Preset("", {"resize": "crop", "shorter_side": 9, "mean": (0.5, 0.4, 0.3)})
    known = Known("classification", ["a", "b", "c"], preset, notes=["mind this"])
    config, notes = described(tmp_path, known, PICTURE)
    assert config["task"] == "classification"
    assert config["image"] == {"size": [8, 8], "resize": "crop", "shorter_side": 9, "mean": [0.5, 0.4, 0.3]}
    assert config["classification"] == {"softmax": True}
    assert (tmp_path / "labels.txt").read_text().split() == ["a", "b", "c"]
    assert notes == ["mind this"]


def test_what_the_user_says_comes_first(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("x\ny\nz\n")
    known = Known("classification", ["a", "b", "c"], Preset("", {"resize": "crop"}), {"top_k": 3})
    wishes = Wishes("raw", str(tmp_path / "names.txt"), "unit", description="mine")
    config, _ = described(tmp_path, known, PICTURE, wishes=wishes)
    assert config["image"] == {"size": [8, 8]}
    assert config["description"] == "mine"
    assert "task" not in config
    assert "raw" not in config
    assert "classification" not in config
    config, _ = described(tmp_path, known, PICTURE, wishes=Wishes(labels=str(tmp_path / "names.txt")))
    assert (tmp_path / "labels.txt").read_text().split() == ["x", "y", "z"]
    assert config["classification"] == {"softmax": True, "top_k": 3}


@pytest.mark.parametrize(
    ("reported", "most", "length"),
    [(None, None, 512), (None, 40, 40), (30, 40, 30), (60, 40, 40), (60, None, 60)],
)
def test_the_longest_text_is_what_all_take(
    tmp_path: Path, reported: int | None, most: int | None, length: int
) -> None:
    (tmp_path / "source").mkdir()
    tokenizer = tmp_path / "source" / "tokenizer.json"
    tokenizer.write_text("{}")
    if reported is not None:
        (tmp_path / "source" / "tokenizer_config.json").write_text(json.dumps({"model_max_length": reported}))
    known = Known("text-classification", ["a", "b", "c"], tokenizer=tokenizer, max_length=most)
    config, _ = described(tmp_path, known, IDS)
    assert config["text"] == {"tokenizer": "tokenizer.json", "max_length": length}
    assert config["text-classification"] == {"softmax": True}
    assert (tmp_path / "tokenizer.json").read_text() == "{}"


def test_vectors_of_tokens_are_pooled_and_those_of_texts_are_not(tmp_path: Path) -> None:
    (tmp_path / "source" / "1_Pooling").mkdir(parents=True)
    tokenizer = tmp_path / "source" / "tokenizer.json"
    tokenizer.write_text("{}")
    (tmp_path / "source" / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    known = Known("text-embedding", tokenizer=tokenizer)
    assert described(tmp_path, known, IDS, np.zeros((1, 16, 4)))[0]["text-embedding"] == {"pooling": "cls"}
    assert "text-embedding" not in described(tmp_path, known, IDS, np.zeros((1, 4)))[0]
    fixed = InputSpec((1, 16), (True, False), "i64", "input_ids")
    assert described(tmp_path, known, fixed, np.zeros((1, 4)))[0]["text"]["max_length"] == 16
