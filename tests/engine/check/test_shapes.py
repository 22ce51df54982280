"""Which shapes a model is checked with: none is guessed."""

from pathlib import Path

import numpy as np
import pytest

from engine.check.shapes import choose_shapes
from engine.errors import InputError
from engine.model.ports import Port
from engine.spec import TensorSpec

IMAGE = Port("in", "0", (None, 3, None, None), "f32")
GRAY = Port("in", "0", (None, None, None, None), "f32")
FIXED = Port("in", "0", (2, 3), "i64")
FLOAT = np.dtype(np.float32)


def shapes(folder: Path, *ports: Port, toml: str | None = None) -> list[tuple[int, ...]] | None:
    if toml is not None:
        (folder / "model.toml").write_text(toml)
    choice = choose_shapes(ports, (), folder / "model.param")
    return None if choice.specs is None else [spec.shape for spec in choice.specs]


def test_declared_shapes(tmp_path: Path) -> None:
    choice = choose_shapes([FIXED], (), tmp_path / "model.param")
    assert choice.specs == (TensorSpec((2, 3), np.dtype(np.int64)),)
    assert choice.source == "declared in the file"
    assert choose_shapes([FIXED], [(5, 3)], tmp_path / "m.param").specs == (
        TensorSpec((5, 3), np.dtype(np.int64)),
    )


@pytest.mark.parametrize(
    ("port", "toml", "wanted"),
    [
        (IMAGE, "[image]\nsize = [8, 9]", (1, 3, 8, 9)),
        (GRAY, '[image]\nsize = [8, 9]\ncolour = "gray"', (1, 1, 8, 9)),
        (GRAY, "[image]\nsize = [8, 9]", (1, 3, 8, 9)),
        (Port("in", "0", (2, 3, 5, None), "f32"), "[image]\nsize = [8, 9]", (2, 3, 5, 9)),
        (Port("in", "0", (3, None, None), "f32"), "[image]\nsize = [8, 9]", (3, 8, 9)),
        (Port("in", "0", (None, 3, 4, 4), "f32"), "[image]", (1, 3, 4, 4)),
        (IMAGE, "[warm_up]\nshapes = [[2, 3, 6, 7], [1, 3, 1, 1]]", (2, 3, 6, 7)),
        (Port("in", "0", None, None), "[warm_up]\nshapes = [[2, 3]]", (2, 3)),
    ],
)
def test_sizes_of_images_and_listed_shapes(
    tmp_path: Path, port: Port, toml: str, wanted: tuple[int, ...]
) -> None:
    assert shapes(tmp_path, port, toml=toml) == [wanted]


def test_shapes_of_several_inputs(tmp_path: Path) -> None:
    ports = IMAGE, Port("more", "1", (None, 4), "f32")
    assert shapes(tmp_path, *ports, toml="[image]\nsize = [8, 9]") is None
    assert shapes(tmp_path, *ports, toml="[warm_up]\nshapes = [[[1, 3, 8, 8], [1, 4]]]") == [
        (1, 3, 8, 8),
        (1, 4),
    ]


@pytest.mark.parametrize(
    "toml",
    [
        None,
        "",
        "[image]",
        'task = "raw"',
        "[warm_up]\nshapes = []",
        "[warm_up]\nshapes = [[[1, 2], [3]]]",
        "image = 3",
    ],
)
def test_nothing_is_guessed(tmp_path: Path, toml: str | None) -> None:
    assert shapes(tmp_path, IMAGE, toml=toml) is None
    assert shapes(tmp_path, Port("in", "0", (None, 3), "f32"), toml="[image]\nsize = [8, 9]") is None
    assert shapes(tmp_path, Port("in", "0", None, None)) is None


def test_versions_share_their_models_file(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "model.toml").write_text("[image]\nsize = [8, 9]")
    choice = choose_shapes([IMAGE], (), tmp_path / "1" / "model.param")
    assert choice.specs == (TensorSpec((1, 3, 8, 9), FLOAT),)
    assert str(tmp_path / "model.toml") in choice.source


@pytest.mark.parametrize(
    "toml", ["[image", "[image]\nsize = 8", "[image]\nsize = [8]", "[image]\nsize = [0, 8]"]
)
def test_file_that_cannot_be_read(tmp_path: Path, toml: str) -> None:
    with pytest.raises(InputError, match=r"model.toml.*; expected (TOML|height and width)"):
        shapes(tmp_path, IMAGE, toml=toml)
