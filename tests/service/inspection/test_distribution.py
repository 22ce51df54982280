"""Distributions of values, against numpy's own figures."""

import numpy as np
import pytest

from service.inspection.distribution import describe_distribution


def test_figures_are_numpys() -> None:
    values = np.random.default_rng(0).normal(2, 3, (7, 11, 13)).astype(np.float32)
    found = describe_distribution(values)
    assert found["counted"] == values.size == sum(found["histogram"]["counts"])
    assert found["min"] == values.min()
    assert found["max"] == values.max()
    assert found["mean"] == pytest.approx(values.mean(dtype=np.float64))
    assert found["std"] == pytest.approx(values.std(dtype=np.float64))
    assert len(found["histogram"]["edges"]) == len(found["histogram"]["counts"]) + 1
    assert found["histogram"]["edges"] == sorted(found["histogram"]["edges"])
    place = len(found["histogram"]["counts"]) // 2
    low, high = found["histogram"]["edges"][place : place + 2]
    assert found["histogram"]["counts"][place] == int(((values >= low) & (values < high)).sum())


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    found = describe_distribution(np.array([1.0, np.nan, np.inf, -np.inf, np.nan, 3.0]))
    assert (found["nan"], found["inf"], found["min"], found["max"], found["mean"]) == (2, 2, 1.0, 3.0, 2.0)
    assert sum(found["histogram"]["counts"]) == 2
    found = describe_distribution(np.array([np.nan, np.inf]))
    assert [found[name] for name in ("min", "mean", "std", "histogram")] == [None] * 4


def test_nothing_has_no_distribution() -> None:
    assert describe_distribution(np.empty((0, 3)))["counted"] == 0


@pytest.mark.parametrize(
    ("values", "edges", "counts"),
    [
        (np.array([True, False, True]), [-0.5, 0.5, 1.5], [1, 2]),
        (np.array([3, 5, 3], np.int8), [2.5, 3.5, 4.5, 5.5], [2, 0, 1]),
        (np.array([2.0, 2.0, 2.0]), [2.0, 2.0], [3]),
        (np.array([-1e308, 1e308]), [-1e308, 1e308], [2]),
        (np.array([1.0, 1.0 + 2**-52]), [1.0, 1.0 + 2**-52], [2]),
    ],
)
def test_classes_fit_the_values(values: np.ndarray, edges: list[float], counts: list[int]) -> None:
    found = describe_distribution(values)
    assert (found["histogram"]["edges"], found["histogram"]["counts"]) == (edges, counts)


def test_complex_values_are_measured_by_their_size() -> None:
    found = describe_distribution(np.array([3 + 4j, 0j], np.complex64))
    assert (found["min"], found["max"]) == (0.0, 5.0)


def test_of_very_many_values_some_are_looked_at() -> None:
    values = np.zeros((1 << 22) * 2 + 5, np.int8)
    found = describe_distribution(values)
    assert found["counted"] == -(-values.size // 3)
    assert found["histogram"]["counts"] == [found["counted"]]
