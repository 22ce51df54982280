"""Measured speed of bf16 vector multiplication on this processor, relative to float32.

Processors with the same instruction differ: some do two a cycle, others need two cycles or more for one. So it is
measured: two kernels with only multiplications, each for some tens of microseconds, the best of several times; a call
takes one microsecond, which is negligible.
"""

import ctypes
from dataclasses import dataclass
from functools import cache as kept
from time import perf_counter_ns

import numpy as np

from engine.compiler.emit.bfloat16 import dot
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import cache
from engine.compiler.emit.target import Target
from engine.compiler.memory.alignment import address_of, aligned_zeros
from engine.compiler.memory.region import Region, line

_SUMS = 16
_ROUNDS = 10_000
_TRIES = 8


@dataclass(frozen=True, slots=True)
class MultiplicationRun:
    """Multiplications that do not wait for each other, added to one vector in the end.

    Attributes:
        is_bf16: whether pairs of bfloat16 are multiplied; else float32.
        lanes: float32 lanes of a vector.
    """

    is_bf16: bool
    lanes: int

    chunks = 1
    scratch = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        """A vector of operands, and one of results."""
        return line(self.lanes), line(self.lanes, is_written=True)

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        operand = e.load(e.argument(0))
        multiply = dot if self.is_bf16 else Emitter.fma
        with e.loop(0, _ROUNDS, carry=[e.splat(0.0)] * _SUMS) as loop:
            loop.following = [multiply(e, operand, operand, total) for total in loop.carried]
        total = loop.results[0]
        for other in loop.results[1:]:
            total = e.fadd(total, other)
        e.store(total, e.argument(1))


@kept
def bf16_speedup(target: Target) -> float:
    """Return how many multiply-adds of bfloat16 pairs in vectors take the time of one in float32."""
    if not target.has_bf16:
        return 0.5  # a pair takes two in float32, and is taken apart before
    floats, pairs = (_nanoseconds(MultiplicationRun(kind, target.lanes), target) for kind in (False, True))
    return 2 * floats / pairs


def _nanoseconds(kernel: MultiplicationRun, target: Target) -> int:
    """Return the least time of a run."""
    code = cache.compile(kernel, target)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)
    memory = aligned_zeros((2, target.lanes))
    table = np.array([address_of(row) for row in memory], np.uint64)
    address = address_of(table)
    best = 1 << 62
    for _ in range(_TRIES):
        start = perf_counter_ns()
        function(address, 0, 0)
        best = min(best, perf_counter_ns() - start)
    return max(1, best)
