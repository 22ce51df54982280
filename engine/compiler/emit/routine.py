"""Emitter of native control code: threads and memory that they share; `Emitter` writes the kernels.

Everything is a 64-bit word here, a number or an address, and a structure in memory is a row of words that are known
by their place. What the C library offers is called like any other function; its results are not looked at.
"""

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from engine.compiler.emit.control_flow import ControlFlow
from engine.compiler.emit.types import I32, I64, KERNEL_TYPE, POINTER, IRIndex, IRValue

_WORD_BYTES = 8
_ORDER = "seq_cst"  # the strongest: these functions run once per chunk, not once per element


class Routine(ControlFlow):
    """A native function that is being written.

    Args:
        module: what it becomes part of.
        name: name of the function.
        parameters: number of its parameters.

    Attributes:
        parameters: its parameters' values.
    """

    def __init__(self, module: ir.Module, name: str, parameters: int) -> None:
        super().__init__(module, name, ir.FunctionType(I64, [I64] * parameters))
        self.parameters: Sequence[IRValue] = self.function.args

    def local(self, words: int) -> IRValue:
        """Return the address of stack memory of the call; use it outside of loops."""
        return self.builder.ptrtoint(self.builder.alloca(I64, words), I64)

    def load(self, base: IRIndex, place: int = 0) -> IRValue:
        """Return a word that no other thread writes meanwhile."""
        return self.builder.load(self._pointer(base, place), align=_WORD_BYTES, typ=I64)

    def store(self, value: IRIndex, base: IRIndex, place: int = 0) -> None:
        """Write a word that no other thread reads or writes meanwhile."""
        self.builder.store(self.index(value), self._pointer(base, place), align=_WORD_BYTES)

    def read(self, base: IRIndex, place: int = 0) -> IRValue:
        """Return a word that other threads may write; all they wrote before it is seen from here on."""
        return self.builder.load_atomic(self._pointer(base, place), _ORDER, _WORD_BYTES, typ=I64)

    def write(self, value: IRIndex, base: IRIndex, place: int = 0) -> None:
        """Write a word that other threads may read; they see all that was written before it."""
        self.builder.atomic_rmw("xchg", self._pointer(base, place), self.index(value), _ORDER)

    def fetch_add(self, term: IRIndex, base: IRIndex, place: int = 0) -> IRValue:
        """Add to a word that other threads may write; returns what it held before."""
        return self.builder.atomic_rmw("add", self._pointer(base, place), self.index(term), _ORDER)

    def replace(self, old: IRIndex, new: IRIndex, base: IRIndex, place: int = 0) -> IRValue:
        """Write `new` where a word still holds `old`; returns whether it did."""
        pair = self.builder.cmpxchg(self._pointer(base, place), self.index(old), self.index(new), _ORDER)
        return self.builder.extract_value(pair, 1)

    @contextmanager
    def until_left(self) -> Iterator[IRValue]:
        """Write a loop without an end; yields the block after it, to `leave` for."""
        top, after = self._block("forever"), self._block("after")
        self.builder.branch(top)
        self.builder.position_at_end(top)
        yield after
        self.builder.branch(top)
        self.builder.position_at_end(after)

    def leave(self, after: IRValue, condition: IRValue) -> None:
        """Leave a loop where a condition holds."""
        onwards = self._block("onwards")
        self.builder.cbranch(condition, after, onwards)
        self.builder.position_at_end(onwards)

    def give(self, result: IRIndex) -> None:
        """Return from the function."""
        self.builder.ret(self.index(result))

    def call(self, name: str, *arguments: IRIndex) -> IRValue:
        """Call a function by name: another routine, or one of the process."""
        function = self._declared(name, ir.FunctionType(I64, [I64] * len(arguments)))
        return self.builder.call(function, [self.index(argument) for argument in arguments])

    def call_kernel(self, address: IRIndex, arguments: IRIndex, chunk: IRIndex, thread: IRIndex) -> None:
        """Call a kernel by the address of its function."""
        kernel = self.builder.inttoptr(self.index(address), KERNEL_TYPE.as_pointer())
        table = self.builder.inttoptr(self.index(arguments), POINTER)
        self.builder.call(kernel, [table, self.index(chunk), self.index(thread)])

    def relax(self) -> None:
        """Emit a pause in a spin loop, which saves power and frees the other hyperthread."""
        if platform.machine().lower() not in ("arm64", "aarch64"):
            pause = self._declared("llvm.x86.sse2.pause", ir.FunctionType(ir.VoidType(), []))
            self.builder.call(pause, [])
        else:
            barrier = self._declared("llvm.aarch64.isb", ir.FunctionType(ir.VoidType(), [I32]))
            self.builder.call(barrier, [ir.Constant(I32, 15)])

    def _declared(self, name: str, kind: ir.FunctionType) -> ir.Function:
        return self.module.globals.get(name) or ir.Function(self.module, kind, name)

    def _pointer(self, base: IRIndex, place: int) -> IRValue:
        return self.builder.inttoptr(self.index(self.add(base, _WORD_BYTES * place)), POINTER)
