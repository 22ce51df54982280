"""Arrays that a model is tried on."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from engine import Array
from service.export.errors import ExportError
from service.export.input_spec import InputSpec

_SEED = 0
_LIMITS = (1000, 100, 10, 2, 1)
"""Bounds of made-up integers, largest first: a table of words takes the first, one of two rows the last but one."""

Shapes = Sequence[tuple[int, ...]]
Run = Callable[[Sequence[Array]], list[Array]]


def trial_arrays(specs: Sequence[InputSpec], shapes: Shapes, limit: int) -> list[Array]:
    """Return arrays of these shapes: numbers from 0 to 1, integers below `limit`, and masks whose last quarter is 0."""
    random = np.random.default_rng(_SEED)
    return [_filled(random, spec, shape, limit) for spec, shape in zip(specs, shapes, strict=True)]


def runnable_arrays(specs: Sequence[InputSpec], shapes: Shapes, run: Run) -> tuple[list[Array], list[Array]]:
    """Return arrays that a model takes, and what it makes of them.

    Raises:
        ExportError: the model runs on none; says what it said to the first.
    """
    problem: ExportError | None = None
    for limit in _limits(specs):
        arrays = trial_arrays(specs, shapes, limit)
        try:
            return arrays, run(arrays)
        except ExportError as error:
            problem = problem or error
    raise problem or ExportError("the model has no inputs to try it on")


def _limits(specs: Sequence[InputSpec]) -> Iterator[int]:
    yield from _LIMITS if any(spec.numpy_dtype.kind in "iu" for spec in specs) else _LIMITS[:1]


def _filled(random: np.random.Generator, spec: InputSpec, shape: tuple[int, ...], limit: int) -> Array:
    dtype = spec.numpy_dtype
    if "mask" in spec.name:
        mask = np.ones(shape, dtype)
        if shape:
            mask[..., shape[-1] - shape[-1] // 4 :] = 0
        return mask
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        most = min(limit, np.iinfo(dtype).max)
        return random.integers(0, 2 if "type" in spec.name else most, shape).astype(dtype)
    return random.random(shape).astype(dtype)
