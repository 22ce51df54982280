"""Polynomial interpolation of the integers in several objects of one structure, by a size.

The builders of a model's program for inputs of several lengths differ in integers only: extents, strides, offsets.
These are sums of products of extents, so at most squares of the length here. Three samples give the polynomial of each;
further ones prove it. Whatever else differs has no place in a program for all lengths.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from math import gcd
from typing import Any, TypeAlias

import numpy as np

from engine.compiler.memory.view import Buffer

LEAST_SAMPLES = 4
"""Objects that are needed: three for a square, and one to prove it."""

Made: TypeAlias = dict[int, Any]
"""Results by the identity of their parts, so that shared parts stay shared."""


class MisfitError(Exception):
    """Objects differ in more than integers that are squares of the size at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Polynomial:
    """An integer that follows from a size n: (a n² + b n + c) / d."""

    a: int
    b: int
    c: int
    d: int

    def at(self, size: int, made: Made) -> Any:
        """Return the int for a size; MisfitError where there is none."""
        del made
        value, rest = divmod((self.a * size + self.b) * size + self.c, self.d)
        if rest:
            raise MisfitError(f"{self} is no integer at {size}")
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """A part that does not depend on the size."""

    value: Any

    def at(self, size: int, made: Made) -> Any:
        """Return it."""
        del size, made
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class Composed:
    """An object with parts.

    Attributes:
        make: makes it of its parts.
        parts: in the order that `make` takes them in.
    """

    make: Callable[[list[Any]], Any]
    parts: tuple["Part", ...]

    def at(self, size: int, made: Made) -> Any:
        """Return it for a size."""
        known = made.get(id(self))
        if known is None:
            known = made[id(self)] = self.make([part.at(size, made) for part in self.parts])
        return known


Part: TypeAlias = Polynomial | Same | Composed


def interpolate(samples: Sequence[Any], sizes: Sequence[int]) -> Part:
    """Return what gives such an object for any size.

    Args:
        samples: the objects, `LEAST_SAMPLES` at least.
        sizes: the sizes of the samples, all different.

    Raises:
        MisfitError: they differ in more than integers that follow from the size.
    """
    if len(samples) < LEAST_SAMPLES or len(set(sizes)) < len(samples):
        raise MisfitError(
            f"{len(samples)} samples at {sizes}; expected {LEAST_SAMPLES} at least, at other sizes"
        )
    return _Interpolation(tuple(sizes)).of(tuple(samples))


class _Interpolation:
    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._buffers: dict[int, tuple[Buffer, ...]] = {}
        self._known: dict[tuple[Any, ...], Part] = {}

    def of(self, values: tuple[Any, ...]) -> Part:
        first = values[0]
        if any(type(value) is not type(first) for value in values):
            raise MisfitError(f"types differ: {', '.join(type(value).__name__ for value in values)}")
        if isinstance(first, Buffer):
            return self._shared(values, self._buffer)
        if all(value is first for value in values):
            return Same(first)
        if isinstance(first, int) and not isinstance(first, bool | Enum):
            return self._integer(values)
        if isinstance(first, tuple | list):
            return self._sequence(values)
        if isinstance(first, dict):
            return self._mapping(values)
        if is_dataclass(first):
            return self._shared(values, self._object)
        return self._same(values)

    def _shared(self, values: tuple[Any, ...], make: Callable[[tuple[Any, ...]], Part]) -> Part:
        """Return the part of such objects, the same where they were seen before."""
        try:
            known = self._known.get(values)
        except TypeError:  # they cannot be hashed
            return make(values)
        if known is None:
            known = self._known[values] = make(values)
        return known

    def _integer(self, values: tuple[int, ...]) -> Part:
        if all(value == values[0] for value in values):
            return Same(values[0])
        result = _square_through(list(zip(self._sizes[:3], values[:3], strict=True)))
        for size, value in zip(self._sizes, values, strict=True):
            if result.at(size, {}) != value:
                raise MisfitError(f"{values} at {self._sizes} are no squares of the size")
        return result

    def _sequence(self, values: tuple[Any, ...]) -> Part:
        if any(len(value) != len(values[0]) for value in values):
            raise MisfitError(f"lengths differ: {', '.join(str(len(value)) for value in values)}")
        return _composed(type(values[0]), [self.of(items) for items in zip(*values, strict=True)], values[0])

    def _mapping(self, values: tuple[Mapping[Any, Any], ...]) -> Part:
        keys = list(values[0])
        if any(list(value) != keys for value in values):
            raise MisfitError("keys differ")
        parts = [self.of(items) for items in zip(*(value.values() for value in values), strict=True)]
        return _composed(lambda items: dict(zip(keys, items, strict=True)), parts, values[0])

    def _object(self, values: tuple[Any, ...]) -> Part:
        kind = type(values[0])
        names = [field.name for field in fields(kind)]
        parts = [self.of(tuple(getattr(value, name) for value in values)) for name in names]
        return _composed(lambda items: kind(**dict(zip(names, items, strict=True))), parts, values[0])

    def _buffer(self, values: tuple[Buffer, ...]) -> Part:
        for value in values:
            # a buffer of one sample corresponds to exactly one of each other
            if self._buffers.setdefault(id(value), values) != values:
                raise MisfitError("tensors share memory in some samples, and not in others")
        first = values[0]
        if any((value.kind, value.slot) != (first.kind, first.slot) for value in values):
            raise MisfitError("buffers of other kinds")
        self._same_content([value.load for value in values])
        return Composed(
            lambda items: Buffer(first.kind, items[0], first.load, first.slot),
            (self.of(tuple(value.size for value in values)),),
        )

    def _same_content(self, loads: Sequence[Callable[[], Any] | None]) -> None:
        first = loads[0]
        for load in loads[1:]:
            if load is None or first is None:
                if load is not first:
                    raise MisfitError("a buffer is a constant in some samples only")
            elif load != first:
                self._same((first(), load()))

    def _same(self, values: tuple[Any, ...]) -> Part:
        first = values[0]
        if isinstance(first, np.ndarray):
            is_same = all(value.dtype == first.dtype and _has_bytes(value, first) for value in values)
        else:
            is_same = all(value == first for value in values)
        if not is_same:
            raise MisfitError(f"a {type(first).__name__} differs")
        return Same(first)


def _has_bytes(value: Any, other: Any) -> bool:
    return bool(value.shape == other.shape and value.tobytes() == other.tobytes())


def _composed(make: Callable[[list[Any]], Any], parts: Sequence[Part], first: Any) -> Part:
    """Rebuild an object from parts; the first sample itself where no part depends on the size."""
    if all(isinstance(part, Same) for part in parts):
        return Same(first)
    return Composed(make, tuple(parts))


def _square_through(points: Sequence[tuple[int, int]]) -> Polynomial:
    """Return the polynomial that goes through three points (Newton's divided differences, in whole numbers)."""
    (n0, v0), (n1, v1), (n2, v2) = points
    d0, d1, d = n1 - n0, n2 - n1, (n1 - n0) * (n2 - n1) * (n2 - n0)
    a = (v2 - v1) * d0 - (v1 - v0) * d1
    b = (v1 - v0) * d1 * (n2 - n0) - a * (n0 + n1)
    c = v0 * d - b * n0 - a * n0 * n0
    shared = gcd(a, b, c, d)
    return Polynomial(a // shared, b // shared, c // shared, d // shared)
