"""How many operations per second the machine can do at all: multiply-adds that wait for nothing."""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import cache
from engine.compiler.emit.target import host_target
from engine.compiler.memory.region import Region, line

TRIES = 40
ROUNDS = 200_000
"""Rounds of the kernel's loop per try: some ten milliseconds."""


@dataclass(frozen=True)
class MultiplyAdds:
    """A kernel that multiplies and adds in registers, in as many sums as hide the time that each takes.

    Arguments: one vector, to which the sums are added so that they are not for nothing.
    """

    rounds: int
    sums: int
    lanes: int
    chunks: int = 1
    scratch: int = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        """Its vector."""
        return (line(self.lanes, is_written=True),)

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        memory = e.argument(0)
        factor, term = e.splat(0.5), e.load(memory)
        with e.loop(0, self.rounds, carry=[term] * self.sums) as loop:
            loop.following = [e.fma(total, factor, term) for total in loop.carried]
        total = term
        for result in loop.results:
            total = e.fadd(total, result)
        e.store(total, memory)


def peak_gflops(threads: int) -> float:
    """Return the best of some tries, in 1e9 operations per second, a multiply-add being two."""
    target = host_target()
    kernel = MultiplyAdds(ROUNDS, target.registers // 2, target.lanes)
    code = cache.compile(kernel, target)  # what is called must stay referred to
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)
    operations = 2 * ROUNDS * kernel.sums * target.lanes * threads
    with ThreadPoolExecutor(threads) as pool:
        calls = [_caller(function, target.lanes) for _ in range(threads)]
        best = min(_seconds(pool, calls) for _ in range(TRIES))
    return operations / best / 1e9


def _seconds(pool: ThreadPoolExecutor, calls: list[Callable[[], None]]) -> float:
    started = perf_counter()
    for future in [pool.submit(call) for call in calls]:
        future.result()
    return perf_counter() - started


def _caller(function: Callable[..., None], lanes: int) -> Callable[[], None]:
    memory = np.zeros(lanes, np.float32)
    arguments = np.array([memory.ctypes.data], np.uint64)
    address = arguments.ctypes.data

    def call(keep: tuple[object, ...] = (memory, arguments)) -> None:
        function(address, 0, 0)

    return call
