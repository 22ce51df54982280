"""Layers of a user in the place of the engine's own: they run on every backend, and nothing folds or fuses them."""

from functools import wraps
from pathlib import Path

import numpy as np
import pytest

from engine import LayerRegistry, RuntimeGraph, TensorSpec, TraceLevel, registry
from engine.dtypes import Array
from engine.spec import Spec
from tests.engine.compiler.plans import IMAGE, batch_norm, conv, weights_of
from tests.engine.models import make_graph

RELU = "F.relu r 1 1 {x} {y} $input={x}"
X = np.linspace(-2, 2, 180, dtype=np.float32).reshape(2, 3, 5, 6)
BACKENDS = ("numpy", "native")


def same(input: TensorSpec, **_: object) -> Spec:
    return input


def negating(type_name: str) -> LayerRegistry:
    """Return the engine's layers with one that gives -x in the place of an activation."""
    layers = registry.copy()

    @layers.layer(type_name, infer=same, replace=True)
    def negate(input: Array) -> Array:
        return -input

    return layers


def open_graph(folder: Path, backend: str, layers: LayerRegistry, *lines: str) -> RuntimeGraph:
    text = "\n".join((IMAGE, *lines, "pnnx.Output out 1 0 y"))
    return make_graph(folder, text, weights_of(text), layers=layers, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("line", ["nn.ReLU r 1 1 x y", RELU.format(x="x", y="y")])
def test_own_activation_runs_alone(tmp_path: Path, backend: str, line: str) -> None:
    graph = open_graph(tmp_path, backend, negating(line.split(maxsplit=1)[0]), line)
    np.testing.assert_array_equal(graph.forward([X])[0], -X)


@pytest.mark.parametrize("backend", BACKENDS)
def test_own_activation_is_not_fused_into_its_neighbours(tmp_path: Path, backend: str) -> None:
    lines = (conv("c", "x", "a"), RELU.format(x="a", y="b"), "F.tanh t 1 1 b y $input=b")
    plain = open_graph(tmp_path, "numpy", registry, conv("c", "x", "y")).forward([X])[0]
    graph = open_graph(tmp_path, backend, negating("F.relu"), *lines)
    run = graph.run([X], trace=TraceLevel.ON)
    np.testing.assert_allclose(run.outputs[0], np.tanh(-plain), atol=1e-5)
    assert run.trace is not None
    assert [layer.backend for layer in run.trace.layers if layer.name == "r"] == ["numpy"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_own_convolution_takes_no_neighbours_in(tmp_path: Path, backend: str) -> None:
    layers = registry.copy()
    built_in = registry.find("nn.Conv2d")
    assert built_in is not None

    @layers.layer("nn.Conv2d", infer=built_in.infer, prepare=built_in.prepare, replace=True)
    @wraps(built_in.forward)
    def sevens(*values: Array, **arguments: Array) -> Array:
        return np.full((2, 4, 5, 6), 7, np.float32)

    lines = (conv("c", "x", "a"), batch_norm("n", "a", "b"), RELU.format(x="b", y="y"))
    graph = open_graph(tmp_path, backend, layers, *lines)
    variance = weights_of(batch_norm("n", "a", "b"))["n.running_var"].reshape(1, 4, 1, 1)
    wanted = np.maximum((7 - variance) / np.sqrt(variance + 1e-5), 0)  # both statistics are the same numbers
    np.testing.assert_allclose(graph.forward([X])[0], np.broadcast_to(wanted, (2, 4, 5, 6)), rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("own", ["pnnx.Attribute", "F.relu"])
def test_own_layer_of_constants_runs_every_time(tmp_path: Path, backend: str, own: str) -> None:
    """It may give something else each time: a counter does."""
    layers = registry.copy()
    calls: list[int] = []

    @layers.layer(own, infer=lambda **_: TensorSpec((1,), np.dtype(np.float32)), replace=True)
    def count(input: Array | None = None, **data: Array) -> Array:
        calls.append(1)
        return np.full(1, len(calls), np.float32)

    lines = (
        "pnnx.Attribute w 0 1 w @data=(1)f32",
        RELU.format(x="w", y="k"),
        "pnnx.Expression e 2 1 x k y expr=add(@0,@1)",
    )
    graph = open_graph(tmp_path, backend, layers, *lines)
    graph.forward([X])  # verification may run it besides
    before = len(calls)
    for wanted in (1, 2, 3):
        np.testing.assert_array_equal(graph.forward([X])[0], X + np.float32(before + wanted))


@pytest.mark.parametrize("backend", BACKENDS)
def test_own_list_is_not_taken_for_the_engines(tmp_path: Path, backend: str) -> None:
    layers = registry.copy()

    @layers.layer("prim::TupleConstruct", infer=lambda *given: (given[::-1],), replace=True)
    def backwards(*values: Array) -> tuple[tuple[Array, ...]]:
        return (values[::-1],)

    lines = (RELU.format(x="x", y="a"), "prim::TupleConstruct t 2 1 x a y")
    outputs = open_graph(tmp_path, backend, layers, *lines).forward([X])
    np.testing.assert_array_equal(outputs[0], np.maximum(X, 0))
    np.testing.assert_array_equal(outputs[1], X)


def test_layer_put_into_the_engines_own_registry_wins_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = negating("F.relu")
    monkeypatch.setattr(registry, "_layers", layers._layers)
    graph = open_graph(tmp_path, "native", registry, RELU.format(x="x", y="y"))
    np.testing.assert_array_equal(graph.forward([X])[0], -X)


def test_copy_with_the_engines_layers_is_compiled(tmp_path: Path) -> None:
    graph = open_graph(tmp_path, "native", registry.copy(), RELU.format(x="x", y="y"))
    trace = graph.run([X], trace=TraceLevel.ON).trace
    assert trace is not None
    assert "native" in [layer.backend for layer in trace.layers]
