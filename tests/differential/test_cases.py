"""The named cases: graphs that once came out wrong, on every vector width and with several threads."""

import pytest

from engine.compiler.emit.target import Target
from tests.differential.case import GraphCase, named_cases, parse_case
from tests.differential.comparison import Mode, Tally, compare
from tests.engine.compiler.harness import every_target

REFUSED = {"bias_of_another_size", "reflected_beyond_its_axis"}
"""Those that no backend runs, nor PyTorch."""


@every_target
@pytest.mark.parametrize("case", named_cases(), ids=lambda case: case.name)
def test_named_case(case: GraphCase, target: Target) -> None:
    tally = Tally()
    finding = compare(case, [Mode(target, threads) for threads in (2, 3, 7)], tally)
    assert finding is None, finding.text
    assert (tally.refused > 0) == (case.name in REFUSED)


@pytest.mark.parametrize("case", named_cases(), ids=lambda case: case.name)
def test_text_of_a_case_reads_back(case: GraphCase) -> None:
    assert parse_case(str(case), case.name) == case
