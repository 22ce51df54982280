"""How exact a tensor has to be follows from what flipped bits change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine import Array, RuntimeGraph
from service.export.agreement import TIMES, compare, reference_of
from service.export.source import Result
from service.export.trial import flip_last_bits
from tests.service.export.stand_in import WEIGHT, LinearSource, write_files

X = np.array([[1, -2, 3, 0.5], [0.25, 1, -1, 2]], np.float32)


@given(arrays(np.float32, st.integers(0, 20), elements=st.floats(width=32)))
def test_a_flipped_bit_is_the_last_one(values: Array) -> None:
    flipped = flip_last_bits(values)
    finite = np.isfinite(values) & (np.abs(values) >= 2.0**-99)
    np.testing.assert_array_equal(flip_last_bits(flipped), values)
    np.testing.assert_array_equal(flipped[~finite], values[~finite])
    assert (flipped[finite] != values[finite]).all()
    np.testing.assert_array_max_ulp(flipped[finite], values[finite], 1)


def test_what_is_not_float32_is_not_flipped() -> None:
    for values in (np.arange(3), np.ones(2, bool), np.ones(2)):
        assert flip_last_bits(values) is values


@pytest.fixture
def graph(tmp_path: Path) -> RuntimeGraph:
    write_files(tmp_path)
    graph = RuntimeGraph(tmp_path / "linear.param", tmp_path / "linear.bin", backend="numpy")
    graph.build()
    return graph


class OffSource(LinearSource):
    """The linear layer with an error of some units of the last place, and a second tensor that no graph computes."""

    units = 0.0

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        (output,) = super().run(arrays)
        return [(output * np.float32(1 + self.units * 2.0**-23)).astype(np.float32)]


@pytest.mark.parametrize(("units", "agrees"), [(0.0, True), (2.0, True), (1000.0, False)])
def test_rounding_agrees_and_what_is_more_does_not(graph: RuntimeGraph, units: float, agrees: bool) -> None:
    source = OffSource()
    source.units = units
    agreement = compare(graph, reference_of(source, [X]))
    assert (agreement.agrees, agreement.outputs_agree) == (agrees, agrees)
    assert (agreement.outputs[0].times <= TIMES) == agrees
    assert bool(agreement.missing) != agrees


def test_a_tolerance_allows_more(graph: RuntimeGraph) -> None:
    source = OffSource()
    source.units = 1000.0
    assert compare(graph, reference_of(source, [X]), tolerance=1e-3).agrees


def test_weights_are_restored(graph: RuntimeGraph) -> None:
    source = LinearSource()
    reference_of(source, [X])
    assert source.weight_of_class is WEIGHT


class MaskedSource(LinearSource):
    """The linear layer, and behind it scores of which one is masked by the smallest number there is."""

    def results(self, arrays: Sequence[Array]) -> list[Result]:
        (output,) = self.run(arrays)
        return [Result(output, "net.py:3 in forward")]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        (output,) = super().run(arrays)
        output[:, 0] = np.finfo(np.float32).min
        return [output]


def test_a_masked_score_hides_no_difference(tmp_path: Path) -> None:
    source = MaskedSource()
    (expected,) = reference_of(source, [X]).outputs
    (wanted,) = source.run([X])
    assert expected.distance(wanted, 0.0) == 0
    off = wanted.copy()
    off[1, 2] += 0.01
    assert expected.distance(off, 0.0) > TIMES
    off = wanted.copy()
    off[1, 0] = 0
    assert expected.distance(off, 0.0) > TIMES


class IntegerSource(LinearSource):
    """Whole numbers that no flipped bit changes."""

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [np.argmax(super().run(arrays)[0], 1)]

    @contextmanager
    def perturbed(self) -> Iterator[None]:
        yield


def test_whole_numbers_are_equal_or_differ() -> None:
    source = IntegerSource()
    (expected,) = reference_of(source, [X]).outputs
    (wanted,) = source.run([X])
    assert expected.distance(wanted, 0.0) == 0
    assert expected.distance(wanted + 1, 0.0) == np.inf
    assert expected.distance(wanted.astype(np.float32), 0.0) == np.inf
