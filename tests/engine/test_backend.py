"""Which backend runs a graph."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from engine import BuildError, TraceLevel
from engine.backend import VARIABLE, Backend, choose_backend
from tests.engine.models import make_graph

LINES = """
    pnnx.Input in 0 1 a #a=(4)f32
    F.relu r 1 1 a b $input=a
    pnnx.Output out 1 0 b
"""


@pytest.fixture
def without_llvmlite(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "llvmlite" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


@pytest.mark.parametrize("backend", ["numpy", "native", "NumPy", Backend.NATIVE])
def test_backend_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, backend: str | Backend) -> None:
    monkeypatch.setenv(VARIABLE, "numpy" if "native" in str(backend).lower() else "native")
    assert choose_backend(backend) is Backend(str(getattr(backend, "value", backend)).lower())


@pytest.mark.parametrize(
    ("variable", "chosen"), [("numpy", Backend.NUMPY), ("auto", Backend.NATIVE), ("", Backend.NATIVE)]
)
def test_environment_chooses_where_the_caller_does_not(
    monkeypatch: pytest.MonkeyPatch, variable: str, chosen: Backend
) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    assert choose_backend() is chosen


def test_kernels_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert choose_backend() is Backend.NATIVE


def test_unknown_backend() -> None:
    with pytest.raises(BuildError, match="^backend 'cuda' is unknown; expected one of numpy, native, auto$"):
        choose_backend("cuda")


@pytest.mark.usefixtures("without_llvmlite")
def test_without_llvmlite_numpy_runs_all() -> None:
    assert choose_backend("auto") is Backend.NUMPY
    assert choose_backend("numpy") is Backend.NUMPY
    with pytest.raises(BuildError, match="^the native backend is not available: llvmlite is not installed$"):
        choose_backend("native")


@pytest.mark.usefixtures("without_llvmlite")
def test_graph_without_llvmlite(tmp_path: Path) -> None:
    x = np.array([-1, 0, 1, np.nan], np.float32)
    graph = make_graph(tmp_path, LINES, backend="auto")
    result = graph.run([x], trace=TraceLevel.ON)
    np.testing.assert_array_equal(result.outputs[0], np.maximum(x, 0))
    assert result.trace is not None
    assert {layer.backend for layer in result.trace.layers} == {"numpy"}
    with pytest.raises(BuildError, match="llvmlite"):
        make_graph(tmp_path, LINES, backend="native")


@pytest.mark.parametrize("problem", [OSError("no vectors here"), ValueError("target 'mmx' is not known")])
def test_processor_that_kernels_are_not_made_for(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    def host_target() -> None:
        raise problem

    monkeypatch.setattr("engine.compiler.emit.target.host_target", host_target)
    assert choose_backend("auto") is Backend.NUMPY
    with pytest.raises(BuildError, match=f"is not available: {problem}"):
        choose_backend("native")
