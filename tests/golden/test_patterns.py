"""What architectures of timm and transformers are made of runs in kernels alone."""

from pathlib import Path

import pytest

from engine import RuntimeGraph
from tests.engine.compiler.program.parity import left_to_numpy
from tests.golden.case import LayerCase
from tests.golden.cases.patterns import CASES
from tests.golden.data import load


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_nothing_is_left_to_numpy(case: LayerCase, tmp_path: Path) -> None:
    """The outputs are compared with PyTorch's in `test_cases`."""
    golden = load("patterns", case.id, len(case.runs))
    (tmp_path / "case.param").write_bytes(golden.param)
    (tmp_path / "case.bin").write_bytes(golden.bin)
    graph = RuntimeGraph(tmp_path / "case.param", tmp_path / "case.bin", backend="native")
    graph.build()
    for inputs, _ in golden.runs:
        assert left_to_numpy(graph, inputs) == set()
    assert graph.verification.refused == ()
