"""What is left of a kernel once it is written."""

import gc
import weakref

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.target import host_target
from engine.compiler.emit.types import IRValue


def write(e: Emitter) -> list[IRValue]:
    """Write a loop that may not run at all, and carries a vector; returns values of it."""
    x = e.argument(0)
    with e.loop(e.chunk, 100, carry=[e.load(x)]) as loop:
        value = e.load(x, loop.index)
        loop.following = [e.fadd(loop.carried[0], e.fmul(value, value))]
    e.store(loop.results[0], x, count=3)
    return [value, loop.index, loop.carried[0], e.builder.block, e.function, e.module]


def test_what_was_written_goes_with_its_emitter() -> None:
    emitter = Emitter(host_target())
    gc.collect()
    gc.disable()
    try:
        left = [weakref.ref(value) for value in write(emitter)]
        text = emitter.finish()
        del emitter
        assert "phi" in text
        assert [place() for place in left] == [None] * len(left)
    finally:
        gc.enable()
