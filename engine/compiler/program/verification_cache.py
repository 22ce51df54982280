"""Verification cache on disk: a later process does not verify the same program again.

A key identifies one successful verification: machine code, memory layout, weights, and the reference. A program that
differs in any of these has another key, and is verified.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from engine.compiler.emit.code_store import VERIFIED, CodeStore, code_key
from engine.compiler.emit.jit import Code, sizes_of
from engine.compiler.emit.weight_files import digest_of
from engine.compiler.memory.view import Buffer, View
from engine.compiler.program.instruction import NativeSteps, NumpyStep
from engine.compiler.program.program import Program
from engine.dtypes import Array
from engine.run.plan import is_engines
from engine.spec import TensorSpec

_AGREED = b"agreed with the reference implementation: "


class VerificationCache:
    """Verified programs of one graph. Thread-safe.

    Args:
        store: the cache on disk.
        content: returns the digest of the graph; called at most once.
    """

    def __init__(self, store: CodeStore, content: Callable[[], str]) -> None:
        self._store = store
        self._content = content

    @cached_property
    def _graph(self) -> str:
        return self._content()

    def key(self, program: Program, inputs: Sequence[TensorSpec]) -> str | None:
        """Return the key of a program for inputs of given types.

        None without a cache, and for code or layers from outside the engine, which the key does not cover.
        """
        if not self._store.is_on or any(code.key is None for code in _codes(program)):
            return None
        if not all(is_engines(step.layer) for step in program.plan.steps):
            return None
        return code_key("\n".join((self._graph, np.__version__, repr(tuple(inputs)), *_describe(program))))

    def contains(self, key: str) -> bool:
        """Return whether a program of this key was verified."""
        return self._store.load(key, VERIFIED) == _text(key)

    def add(self, key: str) -> None:
        """Record that a program of this key was verified."""
        self._store.save(key, _text(key), VERIFIED)


def _text(key: str) -> bytes:
    return _AGREED + key.encode()


def _codes(program: Program) -> Iterator[Code]:
    """Yield the code of each call."""
    for instruction in program.instructions:
        if isinstance(instruction, NativeSteps):
            yield from (step.code for step in instruction.segment.steps)


def _describe(program: Program) -> Iterator[str]:
    """Yield all that determines a program's results, besides the graph."""
    yield repr(
        (program.threads, program.scratch_bytes, program.order, program.fused_into, program.precisions)
    )
    for instruction in program.instructions:
        if isinstance(instruction, NumpyStep):
            yield repr((instruction.step, instruction.collects))
        else:
            yield repr(instruction.owners)
    constants = {load: place for place, load in enumerate(program.loads)}
    for call, code in zip(program.calls, _codes(program), strict=True):
        places = [_place(program.offsets, constants, view) for view in call.arguments]
        yield f"{code.key} {call.kernel.chunks} {sizes_of(call.kernel)} {places}"
    for slot, view in program.exports.items():
        yield f"{slot} {_place(program.offsets, constants, view)}"
    yield from (digest_of(load()) for load in program.loads)


def _place(offsets: Mapping[Buffer, int], constants: Mapping[Callable[[], Array], int], view: View) -> object:
    """Return where a view lies, in a form that is the same in every process."""
    buffer = view.buffer
    constant = None if buffer.load is None else constants[buffer.load]
    place = (buffer.kind.value, buffer.size, buffer.slot, offsets.get(buffer), constant)
    return (*place, view.offset, view.shape, view.strides)
