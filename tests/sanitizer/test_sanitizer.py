"""The sanitizer finds what it is for: kernels with a fault of each kind, and nothing in those without."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import I8
from engine.compiler.memory.alignment import address_of
from engine.compiler.memory.region import Region, line
from engine.compiler.memory.view import Buffer, BufferKind, View, whole
from engine.compiler.selection import KernelCall
from engine.dtypes import Array
from tests.engine.compiler.harness import every_target
from tests.sanitizer.call import Order, Place, SanitizerError, run_call
from tests.sanitizer.emitter import CheckedEmitter
from tests.sanitizer.shadow import Shadows

SIZE = 37


@dataclass(frozen=True)
class Planted:
    """A copy of `SIZE` elements, one a chunk, with something else before it."""

    extra: Callable[[Emitter], object] = lambda e: None
    chunks: int = SIZE
    scratch: int = 0
    regions: tuple[Region, ...] = (line(SIZE), line(SIZE, is_written=True))

    def emit(self, e: Emitter) -> None:
        self.extra(e)
        e.store_scalar(e.load_scalar(e.argument(0), e.chunk), e.argument(1), e.chunk)


def run(kernel: Planted, target: Target, *views: View, threads: int = 2) -> Array:
    """Run a kernel on views of three rows of `SIZE` elements: what it reads, what it writes, and something else."""
    memory = np.arange(3 * SIZE, dtype=np.float32)
    shadows = Shadows()
    given = shadows.at(address_of(memory), memory.size, holds_values=True)
    given[SIZE : 2 * SIZE] = 0
    places = [Place(address_of(memory), given) for _ in views]
    run_call(KernelCall(kernel, views), places, target, Order(threads, random.Random(0)))
    return memory


def rows(buffer: Buffer | None = None) -> list[View]:
    table = whole(buffer or Buffer(BufferKind.VALUE, 3 * SIZE), (3, SIZE))
    return [table.sliced(0, row, 1) for row in range(2)]


@every_target
def test_kernel_that_keeps_to_its_arguments_runs(target: Target) -> None:
    memory = run(Planted(), target, *rows())
    np.testing.assert_array_equal(memory[SIZE : 2 * SIZE], memory[:SIZE])


FAULTS: dict[str, tuple[Callable[[Emitter], object], str]] = {
    "a scalar before": (
        lambda e: e.load_scalar(e.argument(0), -1),
        "reads 1 elements at byte -4 of argument 0, 4 by",
    ),
    "a scalar behind": (
        lambda e: e.load_scalar(e.argument(1), SIZE),
        f"reads 1 elements at byte {4 * SIZE} of argument 1",
    ),
    "a broadcast": (
        lambda e: e.load_broadcast(e.argument(0), -2),
        "reads 1 elements at byte -8 of argument 0, 8 by",
    ),
    "a vector that ends behind": (lambda e: e.load(e.argument(1), SIZE - e.lanes + 1), "outside"),
    "lanes of a vector": (lambda e: e.load(e.argument(0), -1, count=3), "reads 3 elements at byte -4"),
    "as many lanes as the call shows": (
        lambda e: e.load(e.argument(0), -1, count=e.minimum(e.add(e.chunk, 3), 3)),
        "reads 3 elements at byte -4",
    ),
    "more lanes than there are": (
        lambda e: e.load(e.argument(1), SIZE - 1, count=e.add(e.chunk, 16)),
        r"reads (4|8|16) elements",
    ),
    "a scalar written": (
        lambda e: e.store_scalar(e.scalar(0.0), e.argument(1), SIZE),
        f"writes 1 elements at byte {4 * SIZE}",
    ),
    "a vector written": (lambda e: e.store(e.splat(0.0), e.argument(1), -1), "writes"),
    "lanes written": (lambda e: e.store(e.splat(0.0), e.argument(1), SIZE - 1, count=2), "writes 2 elements"),
    "as many lanes written as the call shows": (
        lambda e: e.store(e.splat(0.0), e.argument(1), SIZE - 1, count=e.minimum(e.add(e.chunk, 2), 2)),
        "writes 2 elements",
    ),
    "an input written": (
        lambda e: e.store_scalar(e.scalar(0.0), e.argument(0)),
        "writes 1 .* not its to touch",
    ),
    "far away": (lambda e: e.load_scalar(e.argument(0), 1 << 40), "reads 1 elements"),
    "no whole element": (
        lambda e: e.load_scalar(e.builder.gep(e.argument(0), [e.index(1)], source_etype=I8)),
        "reads 1 elements at byte 1 of",
    ),
    "unwritten": (lambda e: e.load_scalar(e.argument(1), e.chunk), "reads 1 elements .* not written before"),
    "what another chunk writes": (
        lambda e: e.store_scalar(e.scalar(0.0), e.argument(1), e.minimum(e.add(e.chunk, 1), SIZE - 1)),
        "writes 1 elements",
    ),
}


@every_target
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(target: Target, name: str) -> None:
    extra, words = FAULTS[name]
    with pytest.raises(SanitizerError, match=words):
        run(Planted(extra), target, *rows())


@every_target
def test_no_lanes_at_all_may_lie_anywhere(target: Target) -> None:
    run(Planted(lambda e: e.load(e.argument(0), 1 << 40, count=e.minimum(e.chunk, 0))), target, *rows())


@every_target
@pytest.mark.parametrize("thread", [-1, 1])
def test_scratch_memory_of_another_thread_is_out_of_reach(target: Target, thread: int) -> None:
    def touch(other: int) -> Callable[[Emitter], object]:
        return lambda e: e.store_scalar(e.scalar(0.0), e.argument(2), e.mul(e.add(e.thread, other), 5))

    run(Planted(touch(0), scratch=5), target, *rows(), threads=3)
    with pytest.raises(SanitizerError, match="writes 1 elements"):
        run(Planted(touch(thread), scratch=5), target, *rows(), threads=3)


@every_target
def test_gaps_between_rows_are_no_part_of_an_argument(target: Target) -> None:
    apart = View(Buffer(BufferKind.VALUE, 3 * SIZE), 0, (2, 3), (5, 1))
    out = View(apart.buffer, SIZE, (4,), (1,))
    stated = Region((2, 3), (5, 1))
    run(Planted(chunks=3, regions=(stated, line(3, is_written=True))), target, apart, out)
    with pytest.raises(SanitizerError, match="reads 1 elements at byte 12 of argument 0, not its to touch"):
        run(Planted(chunks=4, regions=(stated, line(4, is_written=True))), target, apart, out)
    with pytest.raises(AssertionError, match="the region of argument 0 is no part of it"):
        run(Planted(chunks=4, regions=(line(4), line(4, is_written=True))), target, apart, out)


@every_target
def test_output_that_is_left_is_found(target: Target) -> None:
    with pytest.raises(AssertionError, match="argument 1, an output, were left as they were"):
        run(Planted(chunks=SIZE - 1), target, *rows())


@every_target
def test_output_that_lies_where_the_input_does_is_found(target: Target) -> None:
    first, _ = rows()
    with pytest.raises(AssertionError, match="argument 0 lies where the call writes"):
        run(Planted(), target, first, View(first.buffer, SIZE - 1, (SIZE,), (1,)))


@every_target
def test_access_that_nobody_asks_for_is_found(target: Target) -> None:
    emitter = CheckedEmitter(target)
    Emitter.load_scalar(emitter, emitter.argument(0))
    with pytest.raises(AssertionError, match="without a question"):
        emitter.finish()
