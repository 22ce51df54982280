from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import InputError, LayerError, RuntimeGraph
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
        ([X.astype(np.float64), Y], "input 'left', operand 'a': dtype is f64; expected f32"),
        (
            [X[0], Y],
            r"input 'left', operand 'a': shape \(3,\) has 1 dimensions; expected 2, like a: \(\?,3\)f32",
        ),
        ([X[:, :2], Y], r"pnnx.Expression diff"),
        (None, "inputs: got a NoneType; expected a list of arrays, or a dict"),
        (1.5, "inputs: got a float; expected a list"),
        (np.stack([X, Y]), "inputs: got a ndarray; expected a list"),
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
