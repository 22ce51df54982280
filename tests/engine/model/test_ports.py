from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import InputError, LayerError, RuntimeGraph
from engine.dtypes import Array
from tests.engine.models import make_graph

TWO_INPUTS = """
    pnnx.Input left 0 1 a #a=(?,3)f32
    pnnx.Input right 0 1 b #b=(2,3)f32
    pnnx.Expression diff 2 1 a b c expr=sub(@0,@1) #c=(?,3)f32
    prim::TupleConstruct pair 2 1 c c d #c=(?,3)f32
    pnnx.Output out 1 0 d
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.ones((2, 3), np.float32)


@pytest.fixture
def graph(tmp_path: Path) -> RuntimeGraph:
    return make_graph(tmp_path, TWO_INPUTS)


def test_ports_are_named(graph: RuntimeGraph) -> None:
    assert [(p.operator, p.operand, p.shape, p.dtype) for p in graph.inputs] == [
        ("left", "a", (None, 3), "f32"),
        ("right", "b", (2, 3), "f32"),
    ]
    assert [(p.operand, p.shape) for p in graph.outputs] == [("c", (None, 3)), ("c.1", (None, 3))]


@pytest.mark.parametrize(
    "inputs",
    [[X, Y], (X, Y), {"left": X, "right": Y}, {"b": Y, "a": X}, {"left": X, "b": Y}],
    ids=["list", "tuple", "operators", "operands", "mixed"],
)
def test_inputs_by_order_or_name(graph: RuntimeGraph, inputs: Any) -> None:
    first, second = graph.forward(inputs)
    np.testing.assert_array_equal(first, X - Y)
    np.testing.assert_array_equal(second, X - Y)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X], r"inputs: got 1; expected 2 \(left a: \(\?,3\)f32; right b: \(2,3\)f32\)"),
        ([X, Y, Y], "inputs: got 3; expected 2"),
        ({"left": X}, "input 'right': is missing"),
        ({"left": X, "a": X, "right": Y}, "input 'left': is given twice, as 'left' and 'a'"),
        ({"left": X, "right": Y, "up": Y}, "no input is called 'up'"),
        (
            [X.astype(np.float64), Y],
            r"input 'left', operand 'a': dtype is f64; expected f32, which array.astype\(np.float32\) makes of it",
        ),
        (
            [[[1, 2, 1e39]], Y],
            r"'a': 1e\+39 is not representable as f32; expected numbers that a: \(\?,3\)f32 can hold",
        ),
        ([[[1, 2, 2**24 + 1]], Y], r"'a': 16777217 is not representable as f32"),
        ([[[1, 2, None]], Y], "'a': dtype is object; expected f32"),
        ([[[1, 2, 1j]], Y], "'a': dtype is c128; expected f32"),
        (
            [X[0], Y],
            r"input 'left', operand 'a': shape \(3,\) has 1 dimensions; expected 2, like a: \(\?,3\)f32 "
            r"\(array\[None\] adds one; a list holds inputs, not rows\)",
        ),
        ([X[:, :2], Y], r"pnnx.Expression diff"),
        (None, "inputs: got a NoneType; expected a list of arrays, or a dict"),
        (1.5, "inputs: got a float; expected a list"),
        (np.stack([X, Y]), r"inputs: got one ndarray; expected a list of 2 \(left a: "),
        ("ab", "inputs: got a str; expected a list"),
        (iter([X, Y]), "inputs: got a list_iterator; expected a list"),
        ([[[1.0], [2.0, 3.0]], Y], "input 'left', operand 'a': no array: .*; expected an array, like a: "),
        ([X, object()], "input 'right', operand 'b': dtype is object; expected f32"),
    ],
)
def test_wrong_inputs_say_what_was_expected(graph: RuntimeGraph, inputs: Any, message: str) -> None:
    with pytest.raises((InputError, LayerError), match=message):
        graph.forward(inputs)


def test_other_batch_runs(graph: RuntimeGraph) -> None:
    assert graph.forward([X[:1], Y])[0].shape == (2, 3)


def test_input_without_declared_type_takes_anything(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 a\npnnx.Expression e 1 1 a b expr=add(@0,1)\npnnx.Output out 1 0 b"
    graph = make_graph(tmp_path, lines)
    assert graph.inputs[0].shape is None
    assert graph.forward([np.zeros((1, 2, 3), np.int64)])[0].dtype == np.int64


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]", "u2", "g", "i4,f4"])
def test_input_without_declared_type_takes_only_dtypes_that_pnnx_has(tmp_path: Path, dtype: str) -> None:
    graph = make_graph(tmp_path, "pnnx.Input in 0 1 a\npnnx.Output out 1 0 a")
    with pytest.raises(InputError, match=r"operand 'a': dtype is .*; expected one of f32, f64, f16, i32"):
        graph.forward([np.zeros((2, 3), dtype)])


def test_foreign_byte_order_is_turned(graph: RuntimeGraph) -> None:
    first, _ = graph.forward([X.astype(">f4"), Y.astype(">f4")])
    np.testing.assert_array_equal(first, X - Y)
    assert first.dtype.isnative


def test_arrays_in_native_order_are_not_copied(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, "pnnx.Input in 0 1 a\npnnx.Output out 1 0 a")
    assert graph.forward([X])[0] is X


ONE = "pnnx.Input in 0 1 a #a=(1,3){dtype}\npnnx.Output out 1 0 a"


@pytest.mark.parametrize(
    "inputs", [X[:1], [X[:1]], (X[:1],), {"in": X[:1]}, [X[:1].tolist()], [((0, 1, 2),)]]
)
def test_graph_is_called_with_arrays_lists_and_names(tmp_path: Path, inputs: Any) -> None:
    graph = make_graph(tmp_path, ONE.format(dtype="f32"))
    for call in (graph, graph.forward):
        (output,) = call(inputs)
        assert output.dtype == np.float32
        assert output.tolist() == [[0, 1, 2]]


def test_graph_is_called_with_several_arrays(graph: RuntimeGraph, tmp_path: Path) -> None:
    np.testing.assert_array_equal(graph(X, Y)[0], X - Y)
    np.testing.assert_array_equal(graph([X, Y])[0], X - Y)
    other = tmp_path / "other"
    other.mkdir()
    assert make_graph(
        other, "pnnx.Attribute w 0 1 a @data=(1)f32\npnnx.Output o 1 0 a", {"w.data": Y[0, :1]}
    )()


class Foreign:
    """An array of another library."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._array


class NeedsGradient:
    """Refuses as a tensor of PyTorch does that takes part in training."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        raise RuntimeError("Use tensor.detach().numpy() instead.")


def test_arrays_of_other_libraries_are_taken(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, ONE.format(dtype="f32"))
    assert graph(Foreign(X[:1]))[0].tolist() == graph([Foreign(X[:1])])[0].tolist() == [[0, 1, 2]]
    with pytest.raises(InputError, match=r"no array: Use tensor.detach\(\)"):
        graph(NeedsGradient())


@pytest.mark.parametrize(
    ("dtype", "numbers", "wanted"),
    [
        ("f32", [[1, 2, 0.1]], np.array([[1, 2, 0.1]], np.float32)),
        ("f32", [[float("nan"), float("inf"), True]], np.array([[np.nan, np.inf, 1]], np.float32)),
        ("f64", [[1, 2, 0.1]], np.array([[1, 2, 0.1]])),
        ("i32", [[1, -2, 3.0]], np.array([[1, -2, 3]], np.int32)),
        ("i64", [[1, 2**62 + 1, 3]], np.array([[1, 2**62 + 1, 3]])),
        ("bool", [[True, False, 1]], np.array([[True, False, True]])),
        ("c64", [[1, 2j, 0.1]], np.array([[1, 2j, 0.1]], np.complex64)),
    ],
)
def test_numbers_in_lists_become_what_the_input_takes(
    tmp_path: Path, dtype: str, numbers: Any, wanted: Array
) -> None:
    (output,) = make_graph(tmp_path, ONE.format(dtype=dtype))([numbers])
    assert output.dtype == wanted.dtype
    np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize(
    ("dtype", "numbers", "fault"),
    [
        ("i32", [[1, 2.5, 3]], "2.5 is not representable as i32"),
        ("i32", [[1, 2**31, 3]], "2147483648 is not representable"),
        ("u8", [[1, -1, 3]], "-1 is not representable"),
        ("i64", [[1.0, float("nan"), 3]], "nan is not representable"),
        ("bool", [[0, 1, 2]], "2 is not representable"),
        ("f64", [[1, 2, 2**53 + 1]], "9007199254740993 is not representable"),
    ],
)
def test_numbers_that_would_change_are_refused(tmp_path: Path, dtype: str, numbers: Any, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        make_graph(tmp_path, ONE.format(dtype=dtype))([numbers])


def test_numbers_for_an_input_without_a_type_are_what_pytorch_makes_of_them(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, "pnnx.Input in 0 1 a\npnnx.Output out 1 0 a")
    for numbers, dtype in (
        ([1, 2.5], np.float32),
        ([1, 2], np.int64),
        ([True], np.bool_),
        ([1j], np.complex64),
    ):
        assert graph([numbers])[0].dtype == dtype
