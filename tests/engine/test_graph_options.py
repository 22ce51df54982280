"""What a graph is made with: arguments that make no sense are refused."""

import re
from pathlib import Path

import pytest

from engine import BuildError, ParamError, PnnxError, RuntimeGraph
from tests.engine.models import make_graph, write_model

CHAIN = "pnnx.Input in 0 1 a #a=(2,3)f32\nF.relu r 1 1 a b\npnnx.Output out 1 0 b"


@pytest.mark.parametrize("threads", [-1, 0, 1025, 10**9])
def test_number_of_threads_that_makes_no_sense_is_refused(tmp_path: Path, threads: int) -> None:
    with pytest.raises(BuildError, match=f"threads: {threads}; expected 1 to 1024"):
        make_graph(tmp_path, CHAIN, threads=threads)


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_path_that_names_no_file_is_told(path: str) -> None:
    with pytest.raises(
        ParamError, match=rf"^{re.escape(repr(path))}: names no file; expected the path of a .param"
    ):
        RuntimeGraph(path)


def test_paths_that_are_no_models_are_told(tmp_path: Path) -> None:
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
