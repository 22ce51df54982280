"""Inputs to try a program on: random ones of the right kind."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from engine.dtypes import Array
from engine.spec import TensorSpec

_SEED = 0
_SMALL = 2
"""Integers are below this: identifiers and masks that any table has room for."""
# `np.random.Generator` is quoted below: numpy imports its random numbers when they are first named, and a
# server with cached verification needs none


@dataclass(frozen=True, slots=True)
class TrialInputs:
    """Inputs to try a program on.

    Attributes:
        kind: a description of them.
        arrays: operand name -> array.
    """

    kind: str
    arrays: dict[str, Array]


def trial_inputs(specs: Mapping[str, TensorSpec]) -> Iterator[TrialInputs]:
    """Yield inputs, until the caller has found conclusive ones: random ones, ones, zeros.

    Floating-point numbers come from a normal distribution, then from (0, 1), where logarithms, roots and inverse
    functions have values; integers are 0 or 1, but those of 8 bits any.
    """
    random = np.random.default_rng(_SEED)

    def filled(kind: str, fill: Callable[[TensorSpec], Array]) -> TrialInputs:
        return TrialInputs(kind, {name: fill(spec) for name, spec in specs.items()})

    yield filled(f"random, seed {_SEED}", lambda spec: _random(random, spec))
    yield filled(f"random between 0 and 1, seed {_SEED}", lambda spec: _positive(random, spec))
    yield filled("all ones", lambda spec: np.ones(spec.shape, spec.dtype))
    yield filled("all zeros", lambda spec: np.zeros(spec.shape, spec.dtype))


def nudged(array: Array, by: float) -> Array:
    """Return an array with every element moved by a part of itself, and of the largest one."""
    finite = array[np.isfinite(array)]
    largest = np.abs(finite).max() if finite.size else 0.0
    return (array * (1 + by) + by * largest).astype(array.dtype)


def _random(random: "np.random.Generator", spec: TensorSpec) -> Array:
    kind = spec.dtype.kind
    if kind == "b":
        return random.integers(0, 2, spec.shape).astype(spec.dtype)
    if kind in "iu":
        most = np.iinfo(spec.dtype).max + 1 if spec.dtype.itemsize == 1 else _SMALL
        return random.integers(0, most, spec.shape).astype(spec.dtype)
    values = random.standard_normal(spec.shape)
    if kind == "c":
        return (values + 1j * random.standard_normal(spec.shape)).astype(spec.dtype)
    return values.astype(spec.dtype)


def _positive(random: "np.random.Generator", spec: TensorSpec) -> Array:
    """Return floating-point numbers between 0 and 1, 0.05 away from both ends; others as `_random` does."""
    if spec.dtype.kind != "f":
        return _random(random, spec)
    return random.uniform(0.05, 0.95, spec.shape).astype(spec.dtype)
