"""Which layers the precision `int4` rounds, and what it reports of the others."""

import logging
from pathlib import Path

import numpy as np
import pytest

from engine import Precision, RuntimeGraph
from engine.compiler.contraction.int4 import Int4
from engine.compiler.emit.weight_files import weight_files
from engine.dtypes import Array
from engine.quantization.int4 import rounded_to_int4
from tests.engine.models import write_model

TEXT = """
pnnx.Input in 0 1 x #x=(2,64)f32
nn.Linear even 1 1 x a bias=True in_features=64 out_features=40 @bias=(40)f32 @weight=(40,64)f32
nn.Linear odd 1 1 a b bias=False in_features=40 out_features=64 @weight=(64,40)f32
F.linear plain 1 1 b c bias=None @weight=(3,64)f32
pnnx.Output out 1 0 c
"""
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "native"])


def weights(**changed: Array) -> dict[str, Array]:
    random = np.random.default_rng(0)
    shapes = {"even.bias": (40,), "even.weight": (40, 64), "odd.weight": (64, 40), "plain.weight": (3, 64)}
    return {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    } | changed


def opened(folder: Path, given: dict[str, Array], backend: str) -> RuntimeGraph:
    graph = RuntimeGraph(write_model(folder, TEXT, given), precision="int4", backend=backend, verify="always")
    graph.build()
    return graph


def expected(x: Array, given: dict[str, Array], *rounded: str) -> Array:
    """Return what numpy computes with some of the weights rounded."""
    even, odd, plain = (
        rounded_to_int4(given[f"{name}.weight"]) if name in rounded else given[f"{name}.weight"]
        for name in ("even", "odd", "plain")
    )
    result: Array = ((x @ even.T + given["even.bias"]) @ odd.T) @ plain.T
    return result


@BACKENDS
def test_layers_of_a_multiple_of_32_features_are_rounded(tmp_path: Path, backend: str) -> None:
    given = weights()
    graph = opened(tmp_path, given, backend)
    x = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32)
    run = graph.run([x], trace="on")
    np.testing.assert_allclose(run.outputs[0], expected(x, given, "even", "plain"), rtol=1e-4, atol=1e-3)
    assert run.trace is not None
    traced = {layer.name: layer.precision for layer in run.trace.layers}
    assert (traced["even"], traced["odd"], traced["plain"]) == ("int4", "f32", "int4")
    assert (graph.precisions["even"], graph.precisions["odd"]) == (Precision.INT4, Precision.F32)
    assert graph.warnings == ()
    assert not graph.verification.refused


@BACKENDS
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_stay(
    tmp_path: Path, backend: str, value: float, caplog: pytest.LogCaptureFixture
) -> None:
    given = weights()
    given["plain.weight"][1, 40] = value
    with caplog.at_level(logging.WARNING):
        graph = opened(tmp_path, given, backend)
    problem = "precision int4 leaves layer 'plain' in float32: weights are not all finite"
    assert graph.warnings == (problem,)
    assert problem in caplog.text
    x = np.ones((2, 64), np.float32)
    np.testing.assert_allclose(graph(x)[0], expected(x, given, "even"), rtol=1e-4, atol=1e-3)


@BACKENDS
def test_a_layer_beyond_its_accuracy_budget_stays(tmp_path: Path, backend: str) -> None:
    """In a group with one large weight all others become 0."""
    given = weights()
    given["even.weight"][:, ::32] = 15
    given["even.weight"][:, 1::32] = 1
    graph = opened(tmp_path, given, backend)
    (warning,) = graph.warnings
    assert warning.startswith(
        "precision int4 leaves layer 'even' in float32: rounding changes its weights by 0."
    )
    assert warning.endswith("more than 0.125")
    x = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32)
    run = graph.run([x], trace="on")
    np.testing.assert_allclose(run.outputs[0], expected(x, given, "plain"), rtol=1e-4, atol=1e-3)
    assert graph.precisions["even"] is Precision.F32


def test_a_model_without_such_layers_is_reported(tmp_path: Path) -> None:
    text = "pnnx.Input in 0 1 x #x=(2,4)f32\nnn.ReLU r 1 1 x y\npnnx.Output out 1 0 y\n"
    graph = RuntimeGraph(write_model(tmp_path, text, {}), precision="int4")
    graph.build()
    assert graph.warnings == (
        "precision int4: no linear layer has constant weights of a multiple of 32 input features",
    )


def test_rounded_weights_are_cached_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process maps what the first one wrote, and gets the same results."""
    monkeypatch.setenv("KUIPER_CACHE", str(tmp_path / "cache"))
    text = TEXT.replace("64", "256").replace("40", "96")
    random = np.random.default_rng(0)
    shapes = {"even.bias": (96,), "even.weight": (96, 256), "odd.weight": (256, 96), "plain.weight": (3, 256)}
    given = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    x, results = np.ones((2, 256), np.float32), []
    for _ in range(2):
        weight_files.cache_clear()
        graph = RuntimeGraph(write_model(tmp_path, text, given), precision="int4", backend="native")
        graph.build()
        results.append(graph(x)[0])
        (operator,) = (one for one in graph.operators if one.name == "even")
        assert operator.layer is not None
        weight = operator.layer.arguments["weight"]
        assert not weight.flags.owndata
        assert not weight.flags.writeable  # mapped
        np.testing.assert_array_equal(weight, rounded_to_int4(given["even.weight"]))
    weight_files.cache_clear()
    assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.plants_a_mistake
def test_a_wrong_kernel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two weights of 4 bits in each other's place make a difference that verification sees; numpy computes then."""
    elements = Int4.elements

    def swapped(self: Int4, weight: Array) -> Array:
        wrong = weight.copy()
        wrong[1, :2] = weight[1, 1::-1]
        return elements(self, wrong)

    monkeypatch.setattr(Int4, "elements", swapped)
    given = weights()
    graph = opened(tmp_path, given, "native")
    x = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32)
    (output,) = graph(x)
    (refusal,) = graph.verification.refused
    assert refusal.operator == "even"
    np.testing.assert_allclose(output, expected(x, given, "even", "plain"), rtol=1e-4, atol=1e-3)


def test_results_of_a_row_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    """One row, a few and many are computed by different kernels."""
    graph = RuntimeGraph(
        write_model(tmp_path, TEXT.replace("(2,64)", "(?,64)"), weights()),
        precision="int4",
        backend="native",
    )
    graph.build()
    x = np.random.default_rng(1).standard_normal((100, 64)).astype(np.float32)
    rows = [graph(x[:count])[0] for count in (1, 2, 100)]
    for row in rows:
        np.testing.assert_allclose(row[0], rows[0][0], rtol=1e-5)
    np.testing.assert_allclose(rows[2], expected(x, weights(), "even", "plain"), rtol=1e-4, atol=1e-3)
    assert not graph.verification.refused
