"""Verification results of programs, cached on disk: a later process need not compare them with the numpy layers again.

A mark is the name of one comparison that came out well: which machine code ran on which places in memory and on which
weights, and what it was compared with. Whatever of that is different has another mark, and is compared.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from engine.compiler.emit.code_store import MARK, CodeStore, code_key
from engine.compiler.emit.jit import Code, sizes_of
from engine.compiler.memory.view import Buffer, View
from engine.compiler.memory.weights import PackedWeights
from engine.compiler.program.instruction import NativeSteps, NumpyStep
from engine.compiler.program.program import Program
from engine.dtypes import Array
from engine.plan import is_engines
from engine.spec import TensorSpec

_AGREED = b"agreed with the numpy layers: "


class VerificationCache:
    """The marks of one graph's programs. Safe to use from any thread.

    Args:
        store: where marks are kept.
        content: gives the digest of all that the graph is made of; asked once, if at all.
    """

    def __init__(self, store: CodeStore, content: Callable[[], str]) -> None:
        self._store = store
        self._content = content

    @cached_property
    def _graph(self) -> str:
        return self._content()

    def of(self, program: Program, inputs: Sequence[TensorSpec]) -> str | None:
        """Return the mark of a program for inputs of given types.

        None where marks are not kept, or code or layers are from outside the engine: a mark knows nothing of them.
        """
        if not self._store.is_on or any(code.key is None for code in _codes(program)):
            return None
        if not all(is_engines(step.layer) for step in program.plan.steps):
            return None
        return code_key("\n".join((self._graph, np.__version__, repr(tuple(inputs)), *_describe(program))))

    def is_set(self, mark: str) -> bool:
        """Tell whether a program of this mark was compared with the numpy layers, and agreed."""
        return self._store.load(mark, MARK) == _text(mark)

    def set(self, mark: str) -> None:
        """Note that a program of this mark agreed with the numpy layers."""
        self._store.save(mark, _text(mark), MARK)


def _text(mark: str) -> bytes:
    return _AGREED + mark.encode()


def _codes(program: Program) -> Iterator[Code]:
    """Yield the code of each call."""
    for instruction in program.instructions:
        if isinstance(instruction, NativeSteps):
            yield from (step.code for step in instruction.segment.steps)


def _describe(program: Program) -> Iterator[str]:
    """Yield all that decides what a program computes, besides the graph."""
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
    for load in program.loads:
        array, owner = load(), getattr(load, "__self__", None)
        known = owner.digest if isinstance(owner, PackedWeights) else None
        yield f"{array.shape} {array.dtype} {known or hashlib.sha256(array.data).hexdigest()}"


def _place(offsets: Mapping[Buffer, int], constants: Mapping[Callable[[], Array], int], view: View) -> object:
    """Return where a view lies, in words that mean the same in every process."""
    buffer = view.buffer
    constant = None if buffer.load is None else constants[buffer.load]
    place = (buffer.kind.value, buffer.size, buffer.slot, offsets.get(buffer), constant)
    return (*place, view.offset, view.shape, view.strides)
