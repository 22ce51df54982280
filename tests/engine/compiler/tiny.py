"""Kernels so small that what is seen is the runner, and memory for them."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Code, Kernel, cache
from engine.compiler.emit.target import host_target
from engine.compiler.emit.types import I64, IRValue
from engine.compiler.memory.region import Region
from engine.compiler.threads.segment import NativeStep, Segment
from engine.dtypes import Array

PERIOD = 60.0


@dataclass(frozen=True)
class Follow:
    """(before[previous], here[chunks], tally[chunks], threads[chunks]): a chunk writes the lowest of `before` plus 1.

    A chunk that runs before all of the step before it are done writes too little; one that runs twice tallies 2.
    """

    previous: int
    chunks: int
    scratch: int = 0
    regions: tuple[Region, ...] = ()

    def emit(self, e: Emitter) -> None:
        before, here, tally, threads = (e.argument(place) for place in range(4))
        with e.loop(0, self.previous, carry=[ir.Constant(I64, 2**62)]) as lowest:
            value = word(e, before, lowest.index)
            lowest.following = [e.minimum(lowest.carried[0], value)]
        set_word(e, e.add(lowest.results[0], 1), here, e.chunk)
        set_word(e, e.add(word(e, tally, e.chunk), 1), tally, e.chunk)
        set_word(e, e.thread, threads, e.chunk)


@dataclass(frozen=True)
class Gate:
    """(words[2]): says in the first word that it was reached, and goes on once the second is not 0."""

    chunks: int = 1
    scratch: int = 0
    regions: tuple[Region, ...] = ()

    def emit(self, e: Emitter) -> None:
        words = e.argument(0)
        e.builder.atomic_rmw("xchg", words, ir.Constant(I64, 1), "seq_cst")
        wait_for(e, e.builder.gep(words, [e.index(1)], source_etype=I64), 1)


@dataclass(frozen=True)
class Meeting:
    """(words[1], threads[chunks]): no chunk ends before all have begun, so that each needs a thread of its own."""

    chunks: int
    scratch: int = 0
    regions: tuple[Region, ...] = ()

    def emit(self, e: Emitter) -> None:
        arrived = e.argument(0)
        e.builder.atomic_rmw("add", arrived, ir.Constant(I64, 1), "seq_cst")
        set_word(e, e.thread, e.argument(1), e.chunk)
        wait_for(e, arrived, self.chunks)


def word(e: Emitter, base: IRValue, place: IRValue) -> IRValue:
    return e.builder.load(e.builder.gep(base, [place], source_etype=I64), align=8, typ=I64)


def set_word(e: Emitter, value: IRValue, base: IRValue, place: IRValue) -> None:
    e.builder.store(value, e.builder.gep(base, [place], source_etype=I64), align=8)


def wait_for(e: Emitter, address: IRValue, value: int) -> None:
    top, after = (e.function.append_basic_block(name) for name in ("wait", "go"))
    e.builder.branch(top)
    e.builder.position_at_end(top)
    seen = e.builder.load_atomic(address, "seq_cst", 8, typ=I64)
    e.builder.cbranch(e.compare(">=", seen, value), after, top)
    e.builder.position_at_end(after)


def compiled(kernel: Kernel) -> Code:
    return cache.compile(kernel, host_target())


class Work:
    """A segment of Follow steps. Every run has tables of its own.

    Attributes:
        segment: what to run.
    """

    def __init__(self, chunks: Sequence[int]) -> None:
        self._chunks = list(chunks)
        previous = [1, *self._chunks]
        self.segment = Segment(
            [
                NativeStep(compiled(Follow(before, here)), 4 * step, here)
                for step, (before, here) in enumerate(zip(previous, self._chunks, strict=False))
            ]
        )

    def tables(self) -> "Tables":
        return Tables(self._chunks)


class Tables:
    """What one run works on.

    Attributes:
        table: the addresses.
        address: of the table.
        threads: per step, who did which chunk.
    """

    def __init__(self, chunks: Sequence[int]) -> None:
        self._values = [np.zeros(count, np.int64) for count in (1, *chunks)]
        self._tally = [np.zeros(count, np.int64) for count in chunks]
        self.threads = [np.full(count, -1, np.int64) for count in chunks]
        rows = zip(self._values, self._values[1:], self._tally, self.threads, strict=False)
        self.table = table([array for row in rows for array in row])
        self.address = self.table.ctypes.data

    def check(self, done: int) -> None:
        """Fail unless the first `done` steps ran in order, every chunk once, and no other step did."""
        for step, (values, tally) in enumerate(zip(self._values[1:], self._tally, strict=True)):
            assert (tally == (step < done)).all()
            assert (values == (step + 1 if step < done else 0)).all()


def table(arrays: Sequence[Array]) -> Array:
    return np.array([array.ctypes.data for array in arrays], np.uint64)


def wait_until(condition: Callable[[], bool]) -> None:
    """Give the core away until a condition holds."""
    deadline = time.monotonic() + PERIOD
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("waited in vain")
        os.sched_yield()
