"""Kernels keep to what their calls give them in random graphs, and in those that once came out wrong."""

import pytest

from engine.compiler.emit.emitter import Emitter
from engine.compiler.kernels.elementwise import Elementwise
from tests.differential.case import GraphCase, named_cases, parse_case
from tests.differential.comparison import Tally
from tests.differential.generator import random_case
from tests.sanitizer.check import check_accesses

SEED = 11
COUNT = 30


@pytest.mark.parametrize("index", range(COUNT))
def test_random_graph(index: int) -> None:
    case = random_case(SEED, index)
    finding = check_accesses(case, index, Tally())
    assert finding is None, f"{finding.text}\n{case}"


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("case", named_cases(), ids=lambda case: case.name)
def test_named_case(case: GraphCase, index: int) -> None:
    finding = check_accesses(case, index, Tally())
    assert finding is None, finding.text


def test_check_reports_a_kernel_that_reads_before_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Elementwise.emit

    def write_wrongly(kernel: Elementwise, e: Emitter) -> None:
        e.load_scalar(e.argument(0), -1)
        write(kernel, e)

    monkeypatch.setattr(Elementwise, "emit", write_wrongly)
    lines = "run (1,43)\npnnx.Input i 0 1 x\nF.relu r 1 1 x y $input=x\npnnx.Output o 1 0 y"
    finding = check_accesses(parse_case(lines, "planted"), 0, Tally())
    assert finding is not None
    assert finding.kind == "memory"
    assert "SanitizerError: F.relu r, Elementwise: chunk 0 reads 1 elements at byte -4" in finding.text
