"""Operators of ONNX that the exporter leaves, in the words of PyTorch."""

from pathlib import Path

import numpy as np
import pytest

from engine import Array, RuntimeGraph
from service.export.onnx_operators import translate_operators

HEAD = "7767517\n3 2\npnnx.Input in0 0 1 0 #0=(2,3,4)f32\n"
X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def run(folder: Path, line: str, shape: str) -> Array:
    param = folder / "net.param"
    param.write_text(f"{HEAD}{line} #0=(2,3,4)f32 #1={shape}f32\npnnx.Output out0 1 0 1 #1={shape}f32\n")
    (folder / "net.bin").write_bytes(b"PK\x05\x06" + bytes(18))  # an archive without entries
    translate_operators(param)
    graph = RuntimeGraph(param, folder / "net.bin")
    graph.build()
    return np.asarray(graph.forward([X])[0])


@pytest.mark.parametrize(
    ("line", "shape", "expected"),
    [
        ("ReduceMax r 1 1 0 1 axes=1 keepdims=0", "(2,4)", X.max(1)),
        ("ReduceMax r 1 1 0 1 axes=(0,-1) keepdims=1", "(1,3,1)", X.max((0, 2), keepdims=True)),
        ("ReduceMin r 1 1 0 1 axes=(1,2)", "(2,1,1)", X.min((1, 2), keepdims=True)),
    ],
)
def test_extremes(tmp_path: Path, line: str, shape: str, expected: Array) -> None:
    np.testing.assert_array_equal(run(tmp_path, line, shape), expected)


def test_elements_are_gathered(tmp_path: Path) -> None:
    param = tmp_path / "net.param"
    param.write_text("7767517\n1 3\nGatherElements g 2 1 0 1 2 axis=1 #0=(2,3)f32 #1=(2,1)i64 #2=(2,1)f32\n")
    translate_operators(param)
    assert param.read_text().splitlines()[2] == (
        "torch.gather g 2 1 0 1 2 dim=1 $input=0 $index=1 #0=(2,3)f32 #1=(2,1)i64 #2=(2,1)f32"
    )


def translated(folder: Path, line: str) -> str:
    param = folder / "net.param"
    param.write_text(f"7767517\n1 3\n{line}\n")
    translate_operators(param)
    return param.read_text().splitlines()[2]


def test_rows_of_a_matrix_are_an_embedding(tmp_path: Path) -> None:
    assert translated(tmp_path, "Gather g 2 1 w i y axis=0 #w=(9,4)f32 #i=(1,16)i64 #y=(1,16,4)f32") == (
        "F.embedding g 2 1 w i y $input=i $weight=w #w=(9,4)f32 #i=(1,16)i64 #y=(1,16,4)f32"
    )
    for line in ("Gather g 2 1 w i y axis=1 #w=(9,4)f32", "Gather g 2 1 w i y axis=0 #w=(9,4,2)f32"):
        assert translated(tmp_path, line) == line


@pytest.mark.parametrize(
    ("option", "function"), [("fmod=0", "remainder"), ("", "remainder"), ("fmod=1", "fmod")]
)
def test_remainders(tmp_path: Path, option: str, function: str) -> None:
    line = " ".join(filter(None, ["Mod m 2 1 x y z", option, "#z=(2)i64"]))
    assert translated(tmp_path, line) == f"pnnx.Expression m 2 1 x y z expr={function}(@0,@1) #z=(2)i64"


def test_what_is_not_known_stays_as_it_is(tmp_path: Path) -> None:
    param = tmp_path / "net.param"
    text = f"{HEAD}ReduceMax r 1 1 0 1 keepdims=0\nNonZero n 1 1 0 2 mode=@x\n"
    param.write_text(text)
    translate_operators(param)
    assert param.read_text() == text
