"""Writes one kernel as LLVM IR: loops, vectors and addresses under names that read like the loop nest they make.

A kernel is a function `void kernel(ptr arguments, i64 chunk, i64 thread)`. `arguments` points at the addresses of its
arrays, in the order that the kernel documents; `chunk` is the part of the work that this call does; `thread` tells
which of a team's threads calls, for scratch memory of its own. All arrays hold float32; offsets count elements.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from engine.compiler.emit.target import Target

F32, I1, I8, I32, I64 = ir.FloatType(), ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = ir.PointerType()
KERNEL_TYPE = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64])
ENTRY = "kernel"
"""Name of the function that a kernel's module defines."""

Value = Any
"""A value of LLVM's: llvmlite has no types of its own for them."""
Index = int | Any
"""An element offset or count: a Python number, or a value of type i64."""


@dataclass(slots=True)
class Loop:
    """A loop that is being written.

    Attributes:
        index: the counter.
        carried: values that come from the iteration before; set `following` to hand new ones on.
        following: values for the next iteration.
        results: values after the loop; there once it is closed.
    """

    index: Value
    carried: list[Value]
    following: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)


class Emitter:
    """A kernel that is being written.

    Attributes:
        target: what it is compiled for.
        lanes: float32 lanes of a vector.
        chunk: which part of the work the call does.
        thread: which thread calls.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lanes = target.lanes
        self.vector_type = ir.VectorType(F32, self.lanes)
        self.module = ir.Module(ENTRY)
        self.function = ir.Function(self.module, KERNEL_TYPE, ENTRY)
        self._arguments, self.chunk, self.thread = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._intrinsics: dict[str, ir.Function] = {}
        self._constants: dict[tuple[float, ...], Value] = {}

    def finish(self) -> str:
        """End the kernel; returns its module as text."""
        self.builder.ret_void()
        text = str(self.module)
        # blocks and their instructions refer to each other: taken apart, they go at once and not some time later
        for block in self.function.blocks:
            block.instructions.clear()
        self.function.blocks.clear()
        return text

    # arguments and index arithmetic

    def argument(self, place: int) -> Value:
        """Return the address of the array at a place among the arguments."""
        address = self.builder.gep(self._arguments, [self.index(place)], source_etype=POINTER)
        return self.builder.load(address, typ=POINTER)

    def index(self, value: Index) -> Value:
        """Return an i64 of a Python number; values pass through."""
        return ir.Constant(I64, value) if isinstance(value, int) else value

    def add(self, *terms: Index) -> Index:
        """Return the sum of indices; of Python numbers, a Python number."""
        total: Index = sum(term for term in terms if isinstance(term, int))
        for term in terms:
            if not isinstance(term, int):
                total = term if isinstance(total, int) and total == 0 else self._binary("add", total, term)
        return total

    def sub(self, left: Index, right: Index) -> Index:
        """Return left - right."""
        return self._binary("sub", left, right)

    def mul(self, left: Index, right: Index) -> Index:
        """Return left * right, folded where a factor is 0 or 1."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, int) and one in (0, 1):
                return other if one else 0
        return self._binary("mul", left, right)

    def divmod(self, left: Index, right: int) -> tuple[Index, Index]:
        """Return quotient and remainder of an index that is not negative."""
        if isinstance(left, int):
            return divmod(left, right)
        if right == 1:
            return left, 0
        divisor = self.index(right)
        return self.builder.udiv(left, divisor), self.builder.urem(left, divisor)

    def unravel(self, index: Index, extents: Sequence[int]) -> list[Index]:
        """Return the coordinates that an index stands for, last one fastest."""
        coordinates: list[Index] = []
        for extent in reversed(extents[1:]):
            index, coordinate = self.divmod(index, extent)
            coordinates.append(coordinate)
        return [index, *reversed(coordinates)]

    def minimum(self, left: Index, right: Index) -> Index:
        """Return the lesser of two signed indices."""
        return self._choose("<", left, right, min)

    def maximum(self, left: Index, right: Index) -> Index:
        """Return the greater of two signed indices."""
        return self._choose(">", left, right, max)

    def compare(self, how: str, left: Index, right: Index) -> Value:
        """Compare two signed indices; `how` is "<", "==" and the like."""
        return self.builder.icmp_signed(how, self.index(left), self.index(right))

    def both(self, *conditions: Value) -> Value:
        """Return whether all conditions hold."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.builder.and_(result, condition)
        return result

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """Return one of two values of one type."""
        return self.builder.select(condition, yes, no)

    # control flow

    @contextmanager
    def loop(self, start: Index, stop: Index, step: int = 1, carry: Sequence[Value] = ()) -> Iterator[Loop]:
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
    def when(self, condition: Value) -> Iterator[None]:
        """Write what is done only where a condition holds; it may not define values for what follows."""
        with self.builder.if_then(condition):
            yield

    # memory

    def address(self, base: Value, *offset: Index) -> Value:
        """Return the address of an element."""
        total = self.add(*offset)
        if isinstance(total, int) and total == 0:
            return base
        return self.builder.gep(base, [self.index(total)], source_etype=F32)

    def load(self, base: Value, *offset: Index, count: int | None = None, rest: float = 0.0) -> Value:
        """Load a vector; of `count` lanes only, the others `rest`, where a count is given."""
        place = self.address(base, *offset)
        if count is None or count == self.lanes:
            return self.builder.load(place, align=4, typ=self.vector_type)
        return self._masked("load", self.vector_type, [POINTER, I32, self._mask_type, self.vector_type])(
            place, ir.Constant(I32, 4), self._mask(count), self.splat(rest)
        )

    def store(self, value: Value, base: Value, *offset: Index, count: int | None = None) -> None:
        """Store a vector, or its first `count` lanes."""
        place = self.address(base, *offset)
        if count is None or count == self.lanes:
            self.builder.store(value, place, align=4)
            return
        self._masked("store", ir.VoidType(), [self.vector_type, POINTER, I32, self._mask_type])(
            value, place, ir.Constant(I32, 4), self._mask(count)
        )

    def load_scalar(self, base: Value, *offset: Index) -> Value:
        """Load one element."""
        return self.builder.load(self.address(base, *offset), align=4, typ=F32)

    def store_scalar(self, value: Value, base: Value, *offset: Index) -> None:
        """Store one element."""
        self.builder.store(value, self.address(base, *offset), align=4)

    def table(self, values: Sequence[int] | Sequence[float]) -> Value:
        """Return the address of constants that the kernel brings along: indices or float32, as the first one is."""
        kind = I64 if isinstance(values[0], int) else F32
        name = f"table.{len(self.module.globals)}"
        table = ir.GlobalVariable(self.module, ir.ArrayType(kind, len(values)), name)
        table.initializer = ir.Constant(table.value_type, [ir.Constant(kind, value) for value in values])
        table.global_constant, table.linkage = True, "private"
        return table

    def load_index(self, table: Value, place: Index) -> Value:
        """Load an index of a table."""
        address = self.builder.gep(table, [self.index(place)], source_etype=I64)
        return self.builder.load(address, typ=I64)

    def load_broadcast(self, base: Value, *offset: Index) -> Value:
        """Load one element into all lanes."""
        return self.broadcast(self.load_scalar(base, *offset))

    def prefetch(self, base: Value, *offset: Index) -> None:
        """Ask for the cache line of an element to come near; it need not exist."""
        read, second_level, data = (ir.Constant(I32, value) for value in (0, 2, 1))
        function = self._intrinsic("llvm.prefetch.p0", ir.VoidType(), [POINTER, I32, I32, I32])
        self.builder.call(function, [self.address(base, *offset), read, second_level, data])

    def copy(self, source: Value, target: Value, count: int) -> None:
        """Write a loop that copies `count` elements that lie side by side."""
        whole = count - count % self.lanes
        with self.loop(0, whole, self.lanes) as loop:
            self.store(self.load(source, loop.index), target, loop.index)
        if whole < count:
            self.store(self.load(source, whole, count=count - whole), target, whole, count=count - whole)

    def fill(self, target: Value, start: int, stop: int) -> None:
        """Write a loop that sets the elements from `start` up to `stop` to zero."""
        whole = start + (stop - start) // self.lanes * self.lanes
        with self.loop(start, whole, self.lanes) as loop:
            self.store(self.splat(0.0), target, loop.index)
        if whole < stop:
            self.store(self.splat(0.0), target, whole, count=stop - whole)

    # vectors; every one of these takes scalars (float) as well, all of one kind in a call

    def splat(self, value: float) -> Value:
        """Return a vector that holds a number in all lanes."""
        return self.constant([value] * self.lanes)

    def scalar(self, value: float) -> Value:
        """Return a number as a scalar."""
        return ir.Constant(F32, float(value))

    def keep(self, vector: Value, count: int) -> Value:
        """Return a vector's first `count` lanes, the others 0."""
        return vector if count == self.lanes else self.select(self._mask(count), vector, self.splat(0.0))

    def constant(self, values: Sequence[float]) -> Value:
        """Return a vector of given numbers, one per lane."""
        return ir.Constant(self.vector_type, [ir.Constant(F32, float(value)) for value in values])

    def like(self, value: Value, number: float) -> Value:
        """Return a number in the form of a value: a vector or a scalar."""
        return ir.Constant(F32, float(number)) if value.type == F32 else self.splat(number)

    def broadcast(self, scalar: Value) -> Value:
        """Return a vector that holds a scalar in all lanes."""
        undefined = ir.Constant(self.vector_type, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
        lanes = ir.Constant(ir.VectorType(I32, self.lanes), [ir.Constant(I32, 0)] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, lanes)

    def fadd(self, left: Value, right: Value) -> Value:
        """Return left + right."""
        return self.builder.fadd(left, right)

    def fsub(self, left: Value, right: Value) -> Value:
        """Return left - right."""
        return self.builder.fsub(left, right)

    def fmul(self, left: Value, right: Value) -> Value:
        """Return left * right."""
        return self.builder.fmul(left, right)

    def fdiv(self, left: Value, right: Value) -> Value:
        """Return left / right."""
        return self.builder.fdiv(left, right)

    def fma(self, left: Value, right: Value, addend: Value) -> Value:
        """Return left * right + addend, rounded once where the target can."""
        if not self.target.has_fma:
            return self.builder.fadd(self.builder.fmul(left, right), addend)
        return self.call("llvm.fma", left, right, addend)

    def fmax(self, left: Value, right: Value) -> Value:
        """Return the greater; `right` where either is NaN, so that a NaN on the right goes on."""
        return self.builder.select(self.builder.fcmp_ordered(">", left, right), left, right)

    def fmin(self, left: Value, right: Value) -> Value:
        """Return the lesser; `right` where either is NaN, so that a NaN on the right goes on."""
        return self.builder.select(self.builder.fcmp_ordered("<", left, right), left, right)

    def call(self, intrinsic: str, *operands: Value) -> Value:
        """Call an intrinsic of LLVM, such as "llvm.sqrt", that takes and gives values of one float type."""
        kind = operands[0].type
        suffix = "f32" if kind == F32 else f"v{self.lanes}f32"
        function = self._intrinsic(f"{intrinsic}.{suffix}", kind, [kind] * len(operands))
        return self.builder.call(function, list(operands))

    def reduce(self, how: str, vector: Value) -> Value:
        """Return one scalar of all lanes: how is "add", "max" or "min" (NaN goes on)."""
        while vector.type.count > 1:
            half = vector.type.count // 2
            low, high = (self._slice(vector, start, half) for start in (0, half))
            if how == "add":
                vector = self.builder.fadd(low, high)
            else:
                name = {"max": "llvm.maximum", "min": "llvm.minimum"}[how]
                function = self._intrinsic(f"{name}.v{half}f32", low.type, [low.type] * 2)
                vector = self.builder.call(function, [low, high])
        return self.builder.extract_element(vector, ir.Constant(I32, 0))

    def transpose(self, vectors: Sequence[Value]) -> list[Value]:
        """Return the elements of vectors, of which there is a power of two, one of each vector after the other.

        Of as many vectors as a vector has lanes these are the columns of a square.
        """
        half = len(vectors) // 2
        columns = list(vectors)
        # each round deals the two halves out alternately, as in a shuffle of cards; log2(lanes) rounds turn the square
        for _ in range(half.bit_length()):
            pairs = list(zip(columns[:half], columns[half:], strict=True))
            columns = [self._interleave(*pair, start) for pair in pairs for start in (0, self.lanes // 2)]
        return columns

    # the rest is how

    @property
    def _mask_type(self) -> Value:
        return ir.VectorType(I1, self.lanes)

    def _mask(self, count: int) -> Value:
        return ir.Constant(
            self._mask_type, [ir.Constant(I1, int(lane < count)) for lane in range(self.lanes)]
        )

    def _masked(self, what: str, result: Value, operands: Sequence[Value]) -> Any:
        # with an operand for the alignment, as LLVM 20 has it; LLVM 22 has an attribute instead, and translates this
        function = self._intrinsic(f"llvm.masked.{what}.v{self.lanes}f32.p0", result, operands)
        return lambda *values: self.builder.call(function, list(values))

    def _intrinsic(self, name: str, result: Value, operands: Sequence[Value]) -> ir.Function:
        if name not in self._intrinsics:
            self._intrinsics[name] = ir.Function(self.module, ir.FunctionType(result, operands), name)
        return self._intrinsics[name]

    def _slice(self, vector: Value, start: int, count: int) -> Value:
        lanes = [ir.Constant(I32, start + lane) for lane in range(count)]
        undefined = ir.Constant(vector.type, ir.Undefined)
        return self.builder.shuffle_vector(vector, undefined, ir.Constant(ir.VectorType(I32, count), lanes))

    def _interleave(self, left: Value, right: Value, start: int) -> Value:
        """Return left[start], right[start], left[start + 1], … until a vector is full."""
        half = self.lanes // 2
        lanes = [ir.Constant(I32, start + lane + side) for lane in range(half) for side in (0, self.lanes)]
        return self.builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(I32, self.lanes), lanes))

    def _binary(self, operation: str, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return {"add": left + right, "sub": left - right, "mul": left * right}[operation]
        write = getattr(self.builder, operation)
        return write(self.index(left), self.index(right), flags=["nsw"])

    def _choose(self, how: str, left: Index, right: Index, fold: Any) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return fold(left, right)
        return self.builder.select(self.compare(how, left, right), self.index(left), self.index(right))

    def _block(self, name: str) -> Value:
        return self.function.append_basic_block(name)

    def _phi(self, kind: Value, *incoming: tuple[Value, Value]) -> Value:
        phi = self.builder.phi(kind)
        for value, block in incoming:
            phi.add_incoming(value, block)
        return phi
