"""How two graphs of fixed sizes become one of dynamic sizes."""

from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph
from service.export.errors import ExportError
from service.export.merge import merge


def graph(batch: int, width: int, body: str, count: int = 3) -> str:
    """Return a graph that takes (batch, 6, 1, width)."""
    sizes = {"n": batch, "w": width, "nw": batch * width, "half": width // 2}
    return f"7767517\n{count} {count - 1}\npnnx.Input in 0 1 0 #0=({batch},6,1,{width})f32\n" + body.format(
        **sizes
    )


def run(tmp_path: Path, text: str, *shape: int) -> np.ndarray:
    (tmp_path / "m.param").write_text(text)
    (tmp_path / "m.bin").write_bytes(b"PK\5\6" + bytes(18))
    made = RuntimeGraph(tmp_path / "m.param", backend="numpy")
    made.build()
    return np.asarray(made.forward([np.arange(np.prod(shape), dtype=np.float32).reshape(shape)])[0])


def test_two_dynamic_sizes_of_a_reshape_are_those_of_its_input(tmp_path: Path) -> None:
    body = (
        "Tensor.reshape r 1 1 0 1 shape=({n},6,{w}) $input=0 #0=({n},6,1,{w})f32 #1=({n},6,{w})f32\n"
        "pnnx.Output out 1 0 1 #1=({n},6,{w})f32\n"
    )
    text = merge(graph(1, 4, body), graph(2, 5, body))
    assert "expr=[size(@0,0),6,size(@0,3)]" in text
    assert "#0=(?,6,1,?)f32" in text
    for shape in ((1, 6, 1, 4), (3, 6, 1, 7)):
        assert run(tmp_path, text, *shape).shape == (shape[0], 6, shape[3])


def test_one_dynamic_size_of_a_reshape_follows_from_the_others(tmp_path: Path) -> None:
    body = (
        "Tensor.reshape r 1 1 0 1 shape=({nw},6) $input=0 #0=({n},6,1,{w})f32 #1=({nw},6)f32\n"
        "pnnx.Output out 1 0 1 #1=({nw},6)f32\n"
    )
    text = merge(graph(1, 4, body), graph(2, 5, body))
    assert "shape=(-1,6)" in text
    assert run(tmp_path, text, 3, 6, 1, 7).shape == (21, 6)


def test_the_last_size_that_is_none_of_the_input_follows_from_the_others(tmp_path: Path) -> None:
    body = (
        "Tensor.reshape r 1 1 0 1 shape=({n},12,{half}) $input=0 #0=({n},6,1,{w})f32 #1=({n},12,{half})f32\n"
        "pnnx.Output out 1 0 1 #1=({n},12,{half})f32\n"
    )
    text = merge(graph(1, 4, body), graph(2, 6, body))
    assert "expr=[size(@0,0),12,-1]" in text
    assert run(tmp_path, text, 3, 6, 1, 8).shape == (3, 12, 4)


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        (
            "F.pad p 1 1 0 1 pad=(0,{w})\n",
            "F.pad p 1 1 0 1 pad=(0,{w})\n",
            r"F.pad p depends on the dynamic sizes in",
        ),
        ("F.relu a 1 1 0 1\n", "F.relu a 1 1 0 1 inplace=True\n", "is written differently for other sizes"),
        ("F.relu a 1 1 0 1\n", "F.gelu a 1 1 0 1\n", "depends on the dynamic sizes"),
    ],
)
def test_what_is_no_size_cannot_be_merged(one: str, other: str, problem: str) -> None:
    with pytest.raises(ExportError, match=problem + ".*fixed sizes: --input without"):
        merge(graph(1, 4, one), graph(2, 5, other))


def test_graphs_of_another_form_cannot_be_merged() -> None:
    with pytest.raises(ExportError, match="a graph of another form"):
        merge(graph(1, 4, "", 3), graph(1, 4, "", 4))
