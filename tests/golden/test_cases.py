"""Every case of the table, against what PyTorch computed."""

from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph
from engine.binding.requantization import to_real
from engine.dtypes import Array
from engine.run.trace import TraceLevel
from engine.spec import TensorSpec, spec_of
from tests.cases import check_each
from tests.golden.case import LayerCase
from tests.golden.cases import families
from tests.golden.data import case_ids, load

TABLE = [pytest.param(family, case, id=case.id) for family, cases in families().items() for case in cases]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("family", "case"), TABLE)
def test_matches_pytorch(family: str, case: LayerCase, backend: str, tmp_path: Path) -> None:
    golden = load(family, case.id, len(case.runs))
    (tmp_path / "case.param").write_bytes(golden.param)
    (tmp_path / "case.bin").write_bytes(golden.bin)
    graph = RuntimeGraph(tmp_path / "case.param", tmp_path / "case.bin", backend=backend)
    graph.build()
    for inputs, expected in golden.runs:
        kept = [array.copy() for array in inputs]
        outputs = graph.forward(inputs)
        assert len(outputs) == len(expected)
        for output, wanted in zip(outputs, expected, strict=True):
            assert_matches(case, output, wanted)
        for before, after in zip(kept, inputs, strict=True):
            np.testing.assert_array_equal(before, after, "a layer wrote to its input")
        if backend == "numpy":
            assert_shape_rules_hold(graph, inputs)


def assert_matches(case: LayerCase, output: Array, wanted: Array) -> None:
    assert (output.shape, output.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(output, wanted, rtol=case.rtol, atol=case.atol)


def assert_shape_rules_hold(graph: RuntimeGraph, inputs: list[Array]) -> None:
    """What the shape rules said before the run is what the run gave."""
    plan = graph.plan([TensorSpec(array.shape, array.dtype) for array in inputs])
    captured = graph.run(inputs, trace=TraceLevel.ON, capture=list(graph.operands)).captured
    for name, value in captured.items():
        expected = to_real(plan.specs[name])
        if isinstance(expected, TensorSpec):
            assert spec_of(value) == expected, f"operand {name}"


def test_data_is_of_this_table() -> None:
    """A case without data, or data without a case: run `python -m tests.golden.make`."""

    def check(family: str) -> None:
        assert {case.id for case in families()[family]} == case_ids(family)

    check_each(sorted(families()), check)
