import numpy as np
import pytest

from engine.compiler.emit.target import Target
from engine.compiler.kernels.ramp import RampKernel
from engine.compiler.kernels.scan import scan
from engine.dtypes import Array
from tests.engine.compiler.harness import every_target, run


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)


@every_target
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_sums(target: Target, axis: int) -> None:
    x = numbers(3, 5, 4)
    kernel = scan("cumsum", axis, x.shape, (20, 4, 1), (20, 4, 1))
    _, out = run(kernel, target, x, np.zeros_like(x))
    np.testing.assert_array_equal(out, np.cumsum(x, axis))


@every_target
@pytest.mark.parametrize("how", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_extremes(target: Target, how: str, axis: int) -> None:
    x = numbers(6, 7)
    x[2], x[4, 3], x[4, 5], x[5] = -np.inf, np.nan, np.nan, np.inf
    wanted = getattr(np, how)(x, axis)
    kernel = scan(how, axis, x.shape, (7, 1), (0, 1) if axis == 0 else (1, 0))
    _, out = run(kernel, target, x, np.zeros(wanted.shape, np.float32))
    np.testing.assert_array_equal(out, wanted)


@every_target
def test_many_lines_are_shared_by_threads(target: Target) -> None:
    x = numbers(300, 100)
    kernel = scan("cumsum", 1, x.shape, (100, 1), (100, 1))
    assert kernel.chunks > 1
    _, out = run(kernel, target, x, np.zeros_like(x))
    np.testing.assert_array_equal(out, np.cumsum(x, 1))


@every_target
@pytest.mark.parametrize("length", [1, 7, 100])
def test_ramp(target: Target, length: int) -> None:
    kernel = RampKernel(start=-3.0, step=2.0, length=length, out_step=2)
    (out,) = run(kernel, target, np.zeros(2 * length, np.float32))
    np.testing.assert_array_equal(out[::2], np.arange(length) * 2 - 3)
