"""A function, its loops and its index arithmetic, as LLVM IR."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from engine.compiler.emit import constants
from engine.compiler.emit.types import I64, IRIndex, IRValue


@dataclass(slots=True)
class Loop:
    """A loop that is being written.

    Attributes:
        index: the counter.
        carried: values that come from the iteration before; set `following` to hand new ones on.
        following: values for the next iteration.
        results: values after the loop; there once it is closed.
    """

    index: IRValue
    carried: list[IRValue]
    following: list[IRValue] = field(default_factory=list)
    results: list[IRValue] = field(default_factory=list)


class ControlFlow:
    """A function that is being written: its index arithmetic, loops and conditions.

    Args:
        module: what it becomes part of.
        name: name of the function.
        kind: its type.
    """

    def __init__(self, module: ir.Module, name: str, kind: ir.FunctionType) -> None:
        self.module = module
        self.function = ir.Function(module, kind, name)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    def finish(self) -> str:
        """End the kernel; returns its module as text."""
        self.builder.ret_void()
        text = str(self.module)
        self._take_apart()
        return text

    def _take_apart(self) -> None:
        """Let all that was written go at once: its parts refer to each other, and would wait for Python to find them.

        Until then each would hold its own text, and several kernels together some megabytes.
        """
        for block in self.function.blocks:
            for instruction in block.instructions:
                if isinstance(instruction, ir.PhiInstr):
                    instruction.incomings.clear()
            block.instructions.clear()
            block.terminator = None
        for value in self.module.globals.values():
            if isinstance(value, ir.Function):
                value.blocks.clear()
                value.args, value.return_value = (), None
        self.module.globals.clear()

    # index arithmetic

    def index(self, value: IRIndex) -> IRValue:
        """Return an i64 of a Python number; values pass through."""
        return constants.index(value) if isinstance(value, int) else value

    def add(self, *terms: IRIndex) -> IRIndex:
        """Return the sum of indices; of Python numbers, a Python number."""
        total: IRIndex = sum(term for term in terms if isinstance(term, int))
        for term in terms:
            if not isinstance(term, int):
                total = term if isinstance(total, int) and total == 0 else self._binary("add", total, term)
        return total

    def sub(self, left: IRIndex, right: IRIndex) -> IRIndex:
        """Return left - right."""
        return self._binary("sub", left, right)

    def mul(self, left: IRIndex, right: IRIndex) -> IRIndex:
        """Return left * right, folded where a factor is 0 or 1."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, int) and one in (0, 1):
                return other if one else 0
        return self._binary("mul", left, right)

    def product(self, factors: Sequence[IRIndex]) -> IRIndex:
        """Return the product of indices, 1 of none."""
        total: IRIndex = 1
        for factor in factors:
            total = self.mul(total, factor)
        return total

    def divmod(self, left: IRIndex, right: IRIndex) -> tuple[IRIndex, IRIndex]:
        """Return quotient and remainder of an index that is not negative."""
        if isinstance(right, int):
            if isinstance(left, int):
                return divmod(left, right)
            if right == 1:
                return left, 0
        dividend, divisor = self.index(left), self.index(right)
        return self.builder.udiv(dividend, divisor), self.builder.urem(dividend, divisor)

    def ceil_divide(self, left: IRIndex, right: IRIndex) -> IRIndex:
        """Return the quotient of indices that are not negative, rounded up; of Python numbers, a Python number."""
        if isinstance(left, int) and isinstance(right, int):
            return -(-left // right)
        return self.divmod(self.sub(self.add(left, right), 1), right)[0]

    def unravel(self, index: IRIndex, extents: Sequence[IRIndex]) -> list[IRIndex]:
        """Return the coordinates of a linear index, last one fastest."""
        coordinates: list[IRIndex] = []
        for extent in reversed(extents[1:]):
            index, coordinate = self.divmod(index, extent)
            coordinates.append(coordinate)
        return [index, *reversed(coordinates)]

    def minimum(self, left: IRIndex, right: IRIndex) -> IRIndex:
        """Return the lesser of two signed indices."""
        return self._choose("<", left, right, min)

    def maximum(self, left: IRIndex, right: IRIndex) -> IRIndex:
        """Return the greater of two signed indices."""
        return self._choose(">", left, right, max)

    def compare(self, how: str, left: IRIndex, right: IRIndex) -> IRValue:
        """Compare two signed indices; `how` is "<", "==" and the like."""
        return self.builder.icmp_signed(how, self.index(left), self.index(right))

    def both(self, *conditions: IRValue) -> IRValue:
        """Return whether all conditions hold."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.builder.and_(result, condition)
        return result

    def negated(self, condition: IRValue) -> IRValue:
        """Return whether a condition does not hold."""
        return self.builder.not_(condition)

    def select(self, condition: IRValue, yes: IRValue, no: IRValue) -> IRValue:
        """Return one of two values of one type."""
        return self.builder.select(condition, yes, no)

    # control flow

    @contextmanager
    def loop(
        self, start: IRIndex, stop: IRIndex, step: int = 1, carry: Sequence[IRValue] = ()
    ) -> Iterator[Loop]:
        """Write a loop over start, start + step, … while below stop.

        Args:
            start: first index.
            stop: end of the indices.
            step: distance of two indices, above 0.
            carry: values for the first iteration; later ones get what the body leaves in `following`.
        """
        certain = isinstance(start, int) and isinstance(stop, int) and start < stop
        before = self.builder.block
        body, after = self._block("loop"), self._block("after")
        # a loop that may not run at all is tested before its first iteration too
        if certain:
            self.builder.branch(body)
        else:
            self.builder.cbranch(self.compare("<", start, stop), body, after)
        self.builder.position_at_end(body)
        index = self._phi(I64, (self.index(start), before))
        carried = [self._phi(value.type, (value, before)) for value in carry]
        loop = Loop(index, list(carried), list(carried))
        yield loop
        last = self.builder.block
        following = self.builder.add(index, self.index(step), flags=["nsw"])
        self.builder.cbranch(self.compare("<", following, stop), body, after)
        index.add_incoming(following, last)
        for phi, value in zip(carried, loop.following, strict=True):
            phi.add_incoming(value, last)
        self.builder.position_at_end(after)
        if certain:
            loop.results = list(loop.following)
            return
        for value, first in zip(loop.following, carry, strict=True):
            phi = self._phi(value.type, (value, last))
            phi.add_incoming(first, before)
            loop.results.append(phi)

    @contextmanager
    def when(self, condition: IRValue) -> Iterator[None]:
        """Write what is done only where a condition holds; it may not define values for what follows."""
        with self.builder.if_then(condition):
            yield

    def _binary(self, operation: str, left: IRIndex, right: IRIndex) -> IRIndex:
        if isinstance(left, int) and isinstance(right, int):
            return {"add": left + right, "sub": left - right, "mul": left * right}[operation]
        write = getattr(self.builder, operation)
        return write(self.index(left), self.index(right), flags=["nsw"])

    def _choose(self, how: str, left: IRIndex, right: IRIndex, fold: Any) -> IRIndex:
        if isinstance(left, int) and isinstance(right, int):
            return fold(left, right)
        return self.builder.select(self.compare(how, left, right), self.index(left), self.index(right))

    def _block(self, name: str) -> IRValue:
        return self.function.append_basic_block(name)

    def _phi(self, kind: IRValue, *incoming: tuple[IRValue, IRValue]) -> IRValue:
        phi = self.builder.phi(kind)
        for value, block in incoming:
            phi.add_incoming(value, block)
        return phi
