"""Emitter of native control code: loops and threads; `Emitter` writes the kernels.

Everything is a 64-bit word here, a number or an address, and a structure in memory is a row of words that are known
by their place. What the C library offers is called like any other function; its results are not looked at.
"""

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from engine.compiler.emit.types import I64, KERNEL_TYPE, POINTER, IRValue

MachineWord = int | Any
"""A Python number, or a value of type i64."""
_WORD_BYTES = 8
_ORDER = "seq_cst"  # the strongest: these functions run once per chunk, not once per element


@dataclass(frozen=True, slots=True)
class Repetition:
    """A loop that is being written; it ends where it is left.

    Attributes:
        routine: what it is part of.
        top: block that a new round begins with.
        after: block that follows the loop.
    """

    routine: "Routine"
    top: IRValue
    after: IRValue

    def leave_when(self, condition: IRValue) -> None:
        """End the loop where a condition holds."""
        self.routine.jump_when(condition, self.after)

    def again_when(self, condition: IRValue) -> None:
        """Begin a new round where a condition holds."""
        self.routine.jump_when(condition, self.top)


class Routine:
    """A native function that is being written.

    Args:
        module: what it becomes part of.
        name: name of the function.
        parameters: number of its parameters.

    Attributes:
        parameters: its parameters' values.
    """

    def __init__(self, module: ir.Module, name: str, parameters: int) -> None:
        self._module = module
        self._function = ir.Function(module, ir.FunctionType(I64, [I64] * parameters), name)
        self._builder = ir.IRBuilder(self._function.append_basic_block("entry"))
        self.parameters: Sequence[IRValue] = self._function.args

    # numbers

    def word(self, value: MachineWord) -> IRValue:
        """Return an i64 of a Python number; values pass through."""
        return ir.Constant(I64, value) if isinstance(value, int) else value

    def add(self, left: MachineWord, right: MachineWord) -> IRValue:
        """Return left + right."""
        return self._builder.add(self.word(left), self.word(right))

    def sub(self, left: MachineWord, right: MachineWord) -> IRValue:
        """Return left - right."""
        return self._builder.sub(self.word(left), self.word(right))

    def mul(self, left: MachineWord, right: MachineWord) -> IRValue:
        """Return left * right."""
        return self._builder.mul(self.word(left), self.word(right))

    def divide(self, left: MachineWord, right: MachineWord) -> IRValue:
        """Return left // right of numbers that are not negative."""
        return self._builder.udiv(self.word(left), self.word(right))

    def remainder(self, left: MachineWord, right: MachineWord) -> IRValue:
        """Return left % right of numbers that are not negative."""
        return self._builder.urem(self.word(left), self.word(right))

    def shift_left(self, value: MachineWord, bits: int) -> IRValue:
        """Return value * 2**bits."""
        return self._builder.shl(self.word(value), self.word(bits))

    def shift_right(self, value: MachineWord, bits: int) -> IRValue:
        """Return value // 2**bits."""
        return self._builder.lshr(self.word(value), self.word(bits))

    def low_bits(self, value: MachineWord, bits: int) -> IRValue:
        """Return value % 2**bits."""
        return self._builder.and_(self.word(value), self.word(2**bits - 1))

    def compare(self, how: str, left: MachineWord, right: MachineWord) -> IRValue:
        """Compare two signed numbers by an operator such as "<"."""
        return self._builder.icmp_signed(how, self.word(left), self.word(right))

    def both(self, left: IRValue, right: IRValue) -> IRValue:
        """Return whether two conditions hold."""
        return self._builder.and_(left, right)

    def negate(self, condition: IRValue) -> IRValue:
        """Return whether a condition does not hold."""
        return self._builder.not_(condition)

    # memory

    def local(self, words: int) -> IRValue:
        """Return the address of stack memory of the call; use it outside of loops."""
        return self._builder.ptrtoint(self._builder.alloca(I64, words), I64)

    def load(self, base: MachineWord, place: int = 0) -> IRValue:
        """Return a word that no other thread writes meanwhile."""
        return self._builder.load(self._pointer(base, place), align=_WORD_BYTES, typ=I64)

    def store(self, value: MachineWord, base: MachineWord, place: int = 0) -> None:
        """Write a word that no other thread reads or writes meanwhile."""
        self._builder.store(self.word(value), self._pointer(base, place), align=_WORD_BYTES)

    def read(self, base: MachineWord, place: int = 0) -> IRValue:
        """Return a word that other threads may write; all they wrote before it is seen from here on."""
        return self._builder.load_atomic(self._pointer(base, place), _ORDER, _WORD_BYTES, typ=I64)

    def write(self, value: MachineWord, base: MachineWord, place: int = 0) -> None:
        """Write a word that other threads may read; they see all that was written before it."""
        self._builder.atomic_rmw("xchg", self._pointer(base, place), self.word(value), _ORDER)

    def fetch_add(self, term: MachineWord, base: MachineWord, place: int = 0) -> IRValue:
        """Add to a word that other threads may write; returns what it held before."""
        return self._builder.atomic_rmw("add", self._pointer(base, place), self.word(term), _ORDER)

    def replace(self, old: MachineWord, new: MachineWord, base: MachineWord, place: int = 0) -> IRValue:
        """Write `new` where a word still holds `old`; returns whether it did."""
        pair = self._builder.cmpxchg(self._pointer(base, place), self.word(old), self.word(new), _ORDER)
        return self._builder.extract_value(pair, 1)

    # control flow

    @contextmanager
    def when(self, condition: IRValue) -> Iterator[None]:
        """Write what is done only where a condition holds; it may not define values for what follows."""
        with self._builder.if_then(condition):
            yield

    @contextmanager
    def forever(self) -> Iterator[Repetition]:
        """Write a loop that ends only where it is left."""
        top, after = self._block("forever"), self._block("after")
        self._builder.branch(top)
        self._builder.position_at_end(top)
        yield Repetition(self, top, after)
        self._builder.branch(top)
        self._builder.position_at_end(after)

    @contextmanager
    def count(self, stop: MachineWord) -> Iterator[IRValue]:
        """Write a loop over 0, 1, … below stop; yields the index."""
        before = self._builder.block
        top, body, after = self._block("count"), self._block("body"), self._block("after")
        self._builder.branch(top)
        self._builder.position_at_end(top)
        index = self._builder.phi(I64)
        index.add_incoming(self.word(0), before)
        self._builder.cbranch(self.compare("<", index, stop), body, after)
        self._builder.position_at_end(body)
        yield index
        index.add_incoming(self.add(index, 1), self._builder.block)
        self._builder.branch(top)
        self._builder.position_at_end(after)

    def jump_when(self, condition: IRValue, target: IRValue) -> None:
        """Go on at another block where a condition holds."""
        onwards = self._block("onwards")
        self._builder.cbranch(condition, target, onwards)
        self._builder.position_at_end(onwards)

    def give(self, result: MachineWord) -> None:
        """Return from the function."""
        self._builder.ret(self.word(result))

    # calls

    def call(self, name: str, *arguments: MachineWord) -> IRValue:
        """Call a function by name: another routine, or one of the process."""
        function = self._declared(name, ir.FunctionType(I64, [I64] * len(arguments)))
        return self._builder.call(function, [self.word(argument) for argument in arguments])

    def call_kernel(
        self, address: MachineWord, arguments: MachineWord, chunk: MachineWord, thread: MachineWord
    ) -> None:
        """Call a kernel by the address of its function."""
        kernel = self._builder.inttoptr(self.word(address), KERNEL_TYPE.as_pointer())
        table = self._builder.inttoptr(self.word(arguments), POINTER)
        self._builder.call(kernel, [table, self.word(chunk), self.word(thread)])

    def relax(self) -> None:
        """Emit a pause in a spin loop, which saves power and frees the other hyperthread."""
        if platform.machine().lower() not in ("arm64", "aarch64"):
            pause = self._declared("llvm.x86.sse2.pause", ir.FunctionType(ir.VoidType(), []))
            self._builder.call(pause, [])
        else:
            barrier = self._declared("llvm.aarch64.isb", ir.FunctionType(ir.VoidType(), [ir.IntType(32)]))
            self._builder.call(barrier, [ir.Constant(ir.IntType(32), 15)])

    def _declared(self, name: str, kind: ir.FunctionType) -> ir.Function:
        return self._module.globals.get(name) or ir.Function(self._module, kind, name)

    def _pointer(self, base: MachineWord, place: int) -> IRValue:
        address = self.add(base, _WORD_BYTES * place) if place else self.word(base)
        return self._builder.inttoptr(address, POINTER)

    def _block(self, name: str) -> IRValue:
        return self._function.append_basic_block(name)
