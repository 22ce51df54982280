"""What a graph is made with: arguments that make no sense are refused."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from engine import BuildError, ParamError, PnnxError, Precision, RuntimeGraph, TraceLevel
from tests.engine.models import make_graph, write_model

CHAIN = "pnnx.Input in 0 1 a #a=(2,3)f32\nF.relu r 1 1 a b\npnnx.Output out 1 0 b"


@pytest.mark.parametrize("threads", [-1, 0, 1025, 10**9])
def test_number_of_threads_that_makes_no_sense_is_refused(tmp_path: Path, threads: int) -> None:
    with pytest.raises(BuildError, match=f"threads: {threads}; expected 1 to 1024"):
        make_graph(tmp_path, CHAIN, threads=threads)


def test_precision_is_one_of_those_that_there_are(tmp_path: Path) -> None:
    for precision in ("f32", "bf16", "int4", "auto", Precision.BF16):
        assert make_graph(tmp_path, CHAIN, precision=precision).precision is Precision(precision)
    with pytest.raises(
        BuildError, match="precision: 'f16' is unknown; expected one of f32, bf16, int8, int4, auto"
    ):
        make_graph(tmp_path, CHAIN, precision="f16")


@pytest.mark.parametrize("tolerance", [-0.1, 1.5, math.nan, math.inf, "0.1", True, None])
def test_tolerance_is_a_part_of_the_result(tmp_path: Path, tolerance: object) -> None:
    with pytest.raises(BuildError, match="expected a number from 0 to 1"):
        make_graph(tmp_path, CHAIN, tolerance=tolerance)


def test_reference_layers_compute_in_float32_whatever_is_asked_for(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, CHAIN, precision="bf16", backend="numpy")
    result = graph.run(np.zeros((2, 3), np.float32), trace=TraceLevel.ON)
    assert result.trace is not None
    assert {layer.precision for layer in result.trace.layers} == {"f32"}
    assert set(graph.precisions.values()) == {Precision.F32}
    assert list(graph.precisions) == ["in", "r", "out"]


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_path_that_names_no_file_is_reported(path: str) -> None:
    with pytest.raises(
        ParamError, match=rf"^{re.escape(repr(path))}: names no file; expected the path of a .param"
    ):
        RuntimeGraph(path)


def test_paths_that_are_no_models_are_reported(tmp_path: Path) -> None:
    param = write_model(tmp_path, CHAIN)
    both = (param.with_suffix(".bin"), param)
    for paths, problem in (
        ((tmp_path,), "is a folder; expected a .param text"),
        ((param, tmp_path), "is a folder; expected a zip archive"),
        ((tmp_path / "none.param",), "none.param: cannot be read: No such file"),
        ((param, tmp_path / "none.bin"), "none.bin: cannot be read: No such file"),
        (both, "model.bin: is a zip archive, as the .bin is; expected a .param text"),
        ((param, param), "model.param: not a zip archive"),
    ):
        with pytest.raises(PnnxError, match=problem):
            RuntimeGraph(*paths).build()
