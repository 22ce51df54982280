"""Interpolation: objects of one structure whose integers follow from a size."""

from dataclasses import dataclass

import numpy as np
import pytest

from engine.compiler.memory.view import Buffer, BufferKind, View
from engine.compiler.program.interpolation import MisfitError, interpolate

SIZES = (7, 19, 37, 67, 11)


@dataclass(frozen=True)
class Thing:
    """Something with parts."""

    name: str
    extents: tuple[int, ...]
    factor: float = 0.5


def thing(size: int) -> Thing:
    return Thing("it", (3, size, 4 * size * size - size + 2, size * (size + 1) // 2))


def test_integers_follow_from_the_size() -> None:
    part = interpolate([thing(size) for size in SIZES], SIZES)
    for size in range(1, 300):
        assert part.at(size, {}) == thing(size)


def test_what_is_the_same_is_kept() -> None:
    parts = [{"a": [Thing("it", (2,)), None, True, np.arange(3)]} for _ in SIZES]
    part = interpolate(parts, SIZES)
    assert part.at(5, {})["a"][:3] == parts[0]["a"][:3]


@pytest.mark.parametrize(
    "make",
    [
        lambda n: Thing("it", (n * n * n,)),
        lambda n: Thing("it", (min(n, 30),)),
        lambda n: Thing("it", (-(-n // 16),)),
        lambda n: Thing("it", (n,), 1 / n),
        lambda n: Thing(f"it {n}", (n,)),
        lambda n: [n] * n,
        lambda n: {n: 1},
        lambda n: n if n > 11 else None,
        lambda n: np.arange(0, n),
        lambda n: np.full(3, n),
        lambda n: n > 11,
    ],
    ids=["cube", "cut", "rounded", "number", "text", "length", "key", "type", "array", "content", "truth"],
)
def test_what_does_not_follow_from_the_size_is_refused(make: object) -> None:
    with pytest.raises(MisfitError):
        interpolate([make(size) for size in SIZES], SIZES)  # type: ignore[operator]


def test_too_few_samples_prove_nothing() -> None:
    with pytest.raises(MisfitError, match="3 samples"):
        interpolate([1, 2, 3], (1, 2, 3))
    with pytest.raises(MisfitError):
        interpolate([1, 1, 1, 1], (1, 2, 3, 3))


def test_integers_of_some_sizes_only() -> None:
    part = interpolate([size // 2 for size in (2, 4, 6, 8)], (2, 4, 6, 8))
    assert part.at(10, {}) == 5
    with pytest.raises(MisfitError, match="is no integer at 5"):
        part.at(5, {})


def views(size: int, is_shared: bool) -> list[View]:
    first, second = (Buffer(BufferKind.ARENA, 2 * size) for _ in range(2))
    return [View(first, 0, (size,), (1,)), View(first if is_shared else second, size, (size,), (1,))]


@pytest.mark.parametrize("is_shared", [True, False])
def test_views_share_the_buffers_that_they_shared(is_shared: bool) -> None:
    part = interpolate([views(size, is_shared) for size in SIZES], SIZES)
    first, second = part.at(100, {})
    assert (first.buffer is second.buffer) is is_shared
    assert (first.buffer.size, second.offset, second.shape) == (200, 100, (100,))
    assert part.at(100, {})[0].buffer is not first.buffer


def test_memory_that_is_shared_at_some_sizes_only_is_refused() -> None:
    with pytest.raises(MisfitError, match="share memory"):
        interpolate([views(size, size > 11) for size in SIZES], SIZES)


def test_constants_have_to_have_the_same_content() -> None:
    def constant(value: float) -> Buffer:
        array = np.full(4, value, np.float32)
        return Buffer(BufferKind.CONSTANT, 4, lambda: array)

    interpolate([constant(1.0) for _ in SIZES], SIZES)
    with pytest.raises(MisfitError):
        interpolate([constant(size) for size in SIZES], SIZES)
    with pytest.raises(MisfitError, match="constant in some"):
        interpolate([constant(1.0) if size > 11 else Buffer(BufferKind.CONSTANT, 4) for size in SIZES], SIZES)
