"""Sums of many numbers, against exact ones."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from engine.dtypes import Array
from engine.kernels.sums import running, total
from engine.layers.softmax import softmax
from tests.engine.models import make_graph

LONG = 40_000


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).random(shape, np.float32) + np.float32(1)


def exact(x: Array, axis: int) -> Array:
    return np.apply_along_axis(math.fsum, axis, x.astype(np.float64))


@pytest.mark.parametrize(("shape", "axis"), [((LONG, 3), 0), ((3, LONG), 1), ((2, LONG, 2), 1), ((7,), 0)])
def test_sums_are_exact_but_for_rounding(shape: tuple[int, ...], axis: int) -> None:
    x = numbers(*shape)
    for given in (x, np.asfortranarray(x)):
        summed = total(given, (axis,))
        assert summed.dtype == np.float32
        np.testing.assert_allclose(summed, exact(x, axis), rtol=2e-6)


def test_running_sums_are_exact_but_for_rounding() -> None:
    x = numbers(LONG)
    found = running(np.add, x, 0)
    assert found.dtype == np.float32
    assert float(found[-1]) == pytest.approx(float(sum(map(Fraction, x.tolist()))), rel=1e-7)


def test_softmax_over_many_rows_sums_to_one() -> None:
    np.testing.assert_allclose(exact(softmax(numbers(LONG, 2), 0), 0), 1, rtol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("kind", ["mean", "sum", "std", "var"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_many_numbers(tmp_path: Path, backend: str, kind: str, axis: int) -> None:
    x = numbers(LONG, 4) if axis == 0 else numbers(4, LONG)
    line = f"torch.{kind} reduce 1 1 x y dim=({axis}) keepdim=False"
    graph = make_graph(tmp_path, f"pnnx.Input in 0 1 x\n{line}\npnnx.Output out 1 0 y", backend=backend)
    options = {"ddof": 1} if kind in ("std", "var") else {}
    wanted = getattr(np, kind)(x.astype(np.float64), axis=axis, **options)
    np.testing.assert_allclose(graph.forward([x])[0], wanted, rtol=2e-6)
    assert not graph.verification.refused


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("factor", [1e30, 1e-30, 0.0])
def test_deviations_neither_overflow_nor_vanish(tmp_path: Path, backend: str, factor: float) -> None:
    """PyTorch computes them in double precision."""
    x = (np.random.default_rng(0).standard_normal((3, 20, 10)) * factor).astype(np.float32)
    line = "torch.std std 1 1 x y dim=(2) keepdim=False unbiased=True"
    graph = make_graph(tmp_path, f"pnnx.Input in 0 1 x\n{line}\npnnx.Output out 1 0 y", backend=backend)
    np.testing.assert_allclose(graph.forward([x])[0], x.astype(np.float64).std(2, ddof=1), rtol=2e-6)
