"""The short form in bfloat16 and int8: some random graphs and the named ones, on all targets in turn."""

from itertools import count, islice
from unittest.mock import patch

import numpy as np
import pytest

from engine.compiler.contraction.arithmetic import BF16, FilterPacking
from engine.dtypes import Array
from tests.differential.case import GraphCase, named_cases
from tests.differential.comparison import Tally
from tests.differential.generator import random_case
from tests.differential.modes import rounded_mode_of
from tests.differential.rounding import can_round, compare_rounded

SEED = 21
COUNT = 3
MANY_PIXELS = 10_000
"""Elements of an input that make a case slow on three numbers of threads."""


def cases(precision: str) -> list[GraphCase]:
    drawn = (random_case(SEED, index) for index in count())
    fit = (case for case in drawn if can_round(case, precision) and _elements(case) < MANY_PIXELS)
    return list(islice(fit, COUNT))


def named(precision: str) -> list[GraphCase]:
    return [case for case in named_cases() if can_round(case, precision)]


def _elements(case: GraphCase) -> int:
    return max(int(np.prod(shape)) for shapes in case.runs for shape in shapes)


@pytest.mark.parametrize(("precision", "rounds"), [("bf16", True), ("bf16", False), ("int8", True)])
def test_random_graphs_are_what_rounding_makes_of_them(precision: str, rounds: bool) -> None:
    tally = Tally()
    for index, case in enumerate([*cases(precision), *(named(precision) if rounds else ())]):
        finding = compare_rounded(case, rounded_mode_of(index, precision), precision, tally, rounds=rounds)
        assert finding is None, f"{finding.text}\n{case}"
    assert sum(tally.runs.values()) >= COUNT


@pytest.mark.plants_a_mistake
def test_a_wrong_kernel_is_found() -> None:
    pack = FilterPacking.pack

    def swapped(self: FilterPacking, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        return pack(self, weight[::-1] if self.arithmetic == BF16 else weight, bias)

    case = next(case for case in named_cases() if case.name == "convolution_branches")
    with patch.object(FilterPacking, "pack", swapped):
        finding = compare_rounded(case, rounded_mode_of(0, "bf16"), "bf16")
    assert finding is not None
