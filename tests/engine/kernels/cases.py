"""Golden cases of the convolutional kernels: parameters and PyTorch's responses, read from `kernels.npz`.

`python -m tests.golden.make_kernels` writes the file. Inputs are not in it; they are drawn again.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.dtypes import Array
from engine.errors import ArgumentError
from tests.cases import check_each

ALL: Any = ...
"""An ellipsis that a type checker accepts in a tuple with other indices."""

DATA = Path(__file__).parents[2] / "golden" / "kernels.npz"


@dataclass(frozen=True)
class KernelCase:
    """One call of a kernel.

    Attributes:
        id: kernel and number.
        shapes: of the arrays it gets, in order.
        dtype: of those arrays.
        special: whether NaN and infinities are among the numbers of the first one.
        arguments: what else it gets, by name, as for PyTorch's function.
        results: how many arrays PyTorch answered with; 0 if it raised.
    """

    id: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    special: bool
    arguments: dict[str, Any]
    results: int = 0

    def draw(self) -> list[Array]:
        """Draw the arrays, the same ones on every call, none of which may be written to."""
        rng = np.random.default_rng(list(self.id.encode()))
        arrays = [self._draw(rng, shape) for shape in self.shapes]
        if self.special and arrays[0].size:
            values = rng.choice([np.nan, np.inf, -np.inf], arrays[0].shape)
            arrays[0] = np.where(rng.random(arrays[0].shape) < 0.1, values, arrays[0]).astype(self.dtype)
        for array in arrays:
            array.flags.writeable = False
        return arrays

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        dtype = np.dtype(self.dtype)
        if dtype.kind in "iu":
            return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
        real = np.round(rng.uniform(-2, 2, shape), 2)  # rounded, so that some maxima are equal
        if dtype.kind == "c":
            return np.asarray(real + 1j * rng.uniform(-2, 2, shape), dtype)
        return np.asarray(real, dtype)


def save(cases: list[KernelCase], responses: dict[str, Array]) -> None:
    """Write cases, and responses named `id/number`."""
    table = json.dumps([asdict(case) for case in cases])
    np.savez_compressed(DATA, cases=np.frombuffer(table.encode(), np.uint8), allow_pickle=False, **responses)


@cache
def _load() -> tuple[list[KernelCase], dict[str, Array]]:
    with np.load(DATA) as archive:
        arrays = {name: archive[name] for name in archive.files}
    table = json.loads(arrays.pop("cases").tobytes())
    cases = [KernelCase(**row | {"shapes": tuple(map(tuple, row["shapes"]))}) for row in table]
    return cases, arrays


def check_golden(kernel: str, call: Callable[..., Array | tuple[Array, Array]]) -> None:
    """Call a kernel with the arrays and arguments of each of its cases and compare with PyTorch.

    Args:
        kernel: name of the cases.
        call: the kernel, with PyTorch's parameters.
    """
    cases = [case for case in _load()[0] if case.id.startswith(f"{kernel}-")]
    check_each(cases, lambda case: _check(case, call))


def _check(case: KernelCase, call: Callable[..., Array | tuple[Array, Array]]) -> None:
    """Compare dtypes, shapes and numbers with PyTorch's."""
    if not case.results:
        with pytest.raises(ArgumentError):
            call(*case.draw(), **case.arguments)
        return
    with np.errstate(all="ignore"):
        results = call(*case.draw(), **case.arguments)
    got = results if isinstance(results, tuple) else (results,)
    expected = [_load()[1][f"{case.id}/{number}"] for number in range(case.results)]
    assert [array.dtype for array in got] == [array.dtype for array in expected]
    assert [array.shape for array in got] == [array.shape for array in expected]
    rtol, atol = (2e-3, 2e-3) if case.dtype == "float16" else (1e-5, 1e-5)
    with np.errstate(invalid="ignore"):
        for array, response in zip(got, expected, strict=True):
            np.testing.assert_allclose(array, response, rtol, atol)
