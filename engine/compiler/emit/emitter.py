"""Emitter of one kernel as LLVM IR: loops, vectors and addresses.

A kernel is a function `void kernel(ptr arguments, i64 chunk, i64 thread)`. `arguments` points at the addresses of its
arrays, in the order that the kernel documents; `chunk` is the part of the work that this call does; `thread` is the
number of the calling thread in its team, for scratch memory of its own. All arrays hold float32; offsets count
elements.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from llvmlite import ir

from engine.compiler.emit import constants
from engine.compiler.emit.control_flow import ControlFlow, Loop
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import (
    ENTRY,
    F32,
    I1,
    I8,
    I32,
    I64,
    KERNEL_TYPE,
    POINTER,
    WORD_BYTES,
    IRIndex,
    IRValue,
    TileShape,
)


class Emitter(ControlFlow):
    """A kernel that is being written: memory and vectors, inside the loops of `ControlFlow`.

    Args:
        target: the compilation target.
        name: name of the function.

    Attributes:
        target: the compilation target.
        lanes: float32 lanes of a vector.
        chunk: which part of the work the call does.
        thread: which thread calls.
        tile_shapes: shapes that matrix registers were given.
    """

    def __init__(self, target: Target, name: str = ENTRY) -> None:
        super().__init__(ir.Module(name), name, KERNEL_TYPE)
        self.target = target
        self.lanes = target.lanes
        self._arguments, self.chunk, self.thread = self.function.args
        self.vector_type = ir.VectorType(F32, self.lanes)
        self.tile_shapes: list[TileShape] = []
        self._intrinsics: dict[str, ir.Function] = {}

    # arguments

    def argument(self, place: int) -> IRValue:
        """Return the address of the array at a place among the arguments."""
        address = self.builder.gep(self._arguments, [self.index(place)], source_etype=POINTER)
        return self.builder.load(address, typ=POINTER)

    def size(self, place: int) -> IRValue:
        """Return the runtime dimension at a place among the arguments."""
        address = self.builder.gep(self._arguments, [self.index(place)], source_etype=I64)
        return self.builder.load(address, typ=I64)

    def chunk_loop(self, grain: IRIndex, total: IRIndex) -> AbstractContextManager[Loop]:
        """Write the loop over the chunk's part of so many units of work, of which each chunk has `grain`."""
        first = self.mul(self.chunk, grain)
        return self.loop(first, self.minimum(self.add(first, grain), total))

    def each_vector(self, length: IRIndex) -> Iterator[tuple[IRIndex, IRIndex]]:
        """Write what is done to a line's elements, vector by vector; yields the first one of each, and how many it has.

        What does not fill a vector is written apart: of a runtime length as a loop that may not run.
        """
        if not isinstance(length, int):
            whole = self.mul(self.divmod(length, self.lanes)[0], self.lanes)
            for first, last, count in ((0, whole, self.lanes), (whole, length, self.sub(length, whole))):
                with self.loop(first, last, self.lanes) as loop:
                    yield loop.index, count
            return
        whole = length - length % self.lanes
        if whole:
            with self.loop(0, whole, self.lanes) as loop:
                yield loop.index, self.lanes
        if whole < length:
            yield whole, length - whole

    # memory

    def address(self, base: IRValue, *offset: IRIndex) -> IRValue:
        """Return the address of an element."""
        total = self.add(*offset)
        if isinstance(total, int) and total == 0:
            return base
        return self.builder.gep(base, [self.index(total)], source_etype=F32)

    def load(
        self, base: IRValue, *offset: IRIndex, count: IRIndex | None = None, rest: float = 0.0
    ) -> IRValue:
        """Load a vector; of `count` lanes only, the others `rest`, where a count is given."""
        place = self.address(base, *offset)
        if count is None or self._is_whole(count):
            return self.builder.load(place, align=4, typ=self.vector_type)
        return self._masked("load", self.vector_type, [POINTER, I32, self._mask_type, self.vector_type])(
            place, constants.integer(4), self._mask(count), self.splat(rest)
        )

    def store(self, value: IRValue, base: IRValue, *offset: IRIndex, count: IRIndex | None = None) -> None:
        """Store a vector, or its first `count` lanes."""
        place = self.address(base, *offset)
        if count is None or self._is_whole(count):
            self.builder.store(value, place, align=4)
            return
        self._masked("store", ir.VoidType(), [self.vector_type, POINTER, I32, self._mask_type])(
            value, place, constants.integer(4), self._mask(count)
        )

    def load_scalar(self, base: IRValue, *offset: IRIndex) -> IRValue:
        """Load one element."""
        return self.builder.load(self.address(base, *offset), align=4, typ=F32)

    def store_scalar(self, value: IRValue, base: IRValue, *offset: IRIndex) -> None:
        """Store one element."""
        self.builder.store(value, self.address(base, *offset), align=4)

    def local(self, vectors: int) -> IRValue:
        """Return the address of so many vectors on the stack."""
        with self.builder.goto_entry_block():  # elsewhere the stack would grow with each round of a loop
            memory = self.builder.alloca(self.vector_type, vectors)
            memory.align = 4 * self.lanes
            return self.builder.gep(memory, [self.index(0)], source_etype=F32)

    def table(self, values: Sequence[int] | Sequence[float]) -> IRValue:
        """Return the address of constants in the kernel's own module: indices or float32, like the first one."""
        kind = I64 if isinstance(values[0], int) else F32
        name = f"table.{len(self.module.globals)}"
        table = ir.GlobalVariable(self.module, ir.ArrayType(kind, len(values)), name)
        table.initializer = ir.Constant(table.value_type, [ir.Constant(kind, value) for value in values])
        table.global_constant, table.linkage = True, "private"
        return table

    def load_index(self, table: IRValue, place: IRIndex) -> IRValue:
        """Load an index of a table."""
        address = self.builder.gep(table, [self.index(place)], source_etype=I64)
        return self.builder.load(address, typ=I64)

    def load_broadcast(self, base: IRValue, *offset: IRIndex) -> IRValue:
        """Load one element into all lanes."""
        return self.broadcast(self.load_scalar(base, *offset))

    def load_words(self, base: IRValue, *offset: IRIndex, count: int) -> IRValue:
        """Load `count` elements side by side as 32-bit integers, as raw bits."""
        return self.builder.load(self.address(base, *offset), align=4, typ=ir.VectorType(I32, count))

    def store_words(self, value: IRValue, base: IRValue, *offset: IRIndex) -> None:
        """Store a vector of 32-bit integers, as many elements as it has."""
        self.builder.store(value, self.address(base, *offset), align=4)

    def prefetch(self, base: IRValue, *offset: IRIndex) -> None:
        """Prefetch the cache line of an element, which need not exist."""
        read, second_level, data = map(constants.integer, (0, 2, 1))
        function = self.intrinsic("llvm.prefetch.p0", ir.VoidType(), [POINTER, I32, I32, I32])
        self.builder.call(function, [self.address(base, *offset), read, second_level, data])

    def tile_load(self, tile: int, base: IRValue, step: int) -> None:
        """Load a matrix register, its rows `step` elements apart."""
        self._move_tile("tileloadd64", tile, base, step)

    def tile_store(self, tile: int, base: IRValue, step: int) -> None:
        """Store a matrix register, its rows `step` elements apart."""
        self._move_tile("tilestored64", tile, base, step)

    def copy(self, source: IRValue, target: IRValue, count: int) -> None:
        """Write a loop that copies `count` elements that are contiguous."""
        whole = count - count % self.lanes
        with self.loop(0, whole, self.lanes) as loop:
            self.store(self.load(source, loop.index), target, loop.index)
        if whole < count:
            self.store(self.load(source, whole, count=count - whole), target, whole, count=count - whole)

    def fill(self, target: IRValue, start: int, stop: int) -> None:
        """Write a loop that sets the elements from `start` up to `stop` to zero."""
        whole = start + (stop - start) // self.lanes * self.lanes
        with self.loop(start, whole, self.lanes) as loop:
            self.store(self.splat(0.0), target, loop.index)
        if whole < stop:
            self.store(self.splat(0.0), target, whole, count=stop - whole)

    def fill_words(self, target: IRValue, start: int, stop: int, word: int) -> None:
        """Write a loop that sets the elements from `start` up to `stop` to a 32-bit integer."""
        whole = start + (stop - start) // self.lanes * self.lanes
        words = ir.Constant(ir.VectorType(I32, self.lanes), [ir.Constant(I32, word)] * self.lanes)
        with self.loop(start, whole, self.lanes) as loop:
            self.store_words(words, target, loop.index)
        for place in range(whole, stop):
            self.store_words(ir.Constant(ir.VectorType(I32, 1), [ir.Constant(I32, word)]), target, place)

    # vectors; every one of these takes scalars (float) as well, all of one kind in a call

    def splat(self, value: float) -> IRValue:
        """Return a vector that holds a number in all lanes."""
        return constants.splat(value, self.lanes)

    def scalar(self, value: float) -> IRValue:
        """Return a number as a scalar."""
        return constants.number(value)

    def keep(self, vector: IRValue, count: IRIndex) -> IRValue:
        """Return a vector's first `count` lanes, the others 0."""
        return vector if self._is_whole(count) else self.select(self._mask(count), vector, self.splat(0.0))

    def to_float(self, value: IRIndex) -> IRValue:
        """Return an index as a float32 scalar."""
        return self.builder.sitofp(self.index(value), F32)

    def to_integer(self, value: IRValue) -> IRValue:
        """Return a float32 scalar, which has to be in range, as an index, without its fraction."""
        return self.builder.fptosi(value, I64)

    def constant(self, values: Sequence[float]) -> IRValue:
        """Return a vector of given numbers, one per lane."""
        return ir.Constant(self.vector_type, list(map(constants.number, values)))

    def like(self, value: IRValue, number: float) -> IRValue:
        """Return a number in the form of a value: a vector or a scalar."""
        return constants.number(number) if value.type == F32 else self.splat(number)

    def broadcast(self, scalar: IRValue) -> IRValue:
        """Return a vector that holds a scalar in all lanes."""
        undefined = constants.undefined(self.vector_type)
        first = self.builder.insert_element(undefined, scalar, constants.integer(0))
        return self.builder.shuffle_vector(first, undefined, constants.integers((0,) * self.lanes))

    def fadd(self, left: IRValue, right: IRValue) -> IRValue:
        """Return left + right."""
        return self.builder.fadd(left, right)

    def fsub(self, left: IRValue, right: IRValue) -> IRValue:
        """Return left - right."""
        return self.builder.fsub(left, right)

    def fmul(self, left: IRValue, right: IRValue) -> IRValue:
        """Return left * right."""
        return self.builder.fmul(left, right)

    def fdiv(self, left: IRValue, right: IRValue) -> IRValue:
        """Return left / right."""
        return self.builder.fdiv(left, right)

    def fma(self, left: IRValue, right: IRValue, addend: IRValue) -> IRValue:
        """Return left * right + addend, rounded once where the target can."""
        if not self.target.has_fma:
            return self.builder.fadd(self.builder.fmul(left, right), addend)
        return self.call("llvm.fma", left, right, addend)

    def fmax(self, left: IRValue, right: IRValue) -> IRValue:
        """Return the greater; `right` where either is NaN, so that a NaN on the right propagates."""
        return self.builder.select(self.builder.fcmp_ordered(">", left, right), left, right)

    def fmin(self, left: IRValue, right: IRValue) -> IRValue:
        """Return the lesser; `right` where either is NaN, so that a NaN on the right propagates."""
        return self.builder.select(self.builder.fcmp_ordered("<", left, right), left, right)

    def call(self, intrinsic: str, *operands: IRValue) -> IRValue:
        """Call an intrinsic of LLVM, such as "llvm.sqrt", that takes and gives values of one float type."""
        kind = operands[0].type
        suffix = "f32" if kind == F32 else f"v{self.lanes}f32"
        function = self.intrinsic(f"{intrinsic}.{suffix}", kind, [kind] * len(operands))
        return self.builder.call(function, list(operands))

    def reduce(self, how: str, vector: IRValue) -> IRValue:
        """Return one scalar of all lanes: `how` is "add", "max" or "min" (NaN propagates)."""
        while vector.type.count > 1:
            half = vector.type.count // 2
            low, high = (self._slice(vector, start, half) for start in (0, half))
            if how == "add":
                vector = self.builder.fadd(low, high)
            else:
                name = {"max": "llvm.maximum", "min": "llvm.minimum"}[how]
                function = self.intrinsic(f"{name}.v{half}f32", low.type, [low.type] * 2)
                vector = self.builder.call(function, [low, high])
        return self.builder.extract_element(vector, constants.integer(0))

    def extract(self, vector: IRValue, lane: int) -> IRValue:
        """Return one lane of a vector."""
        return self.builder.extract_element(vector, ir.Constant(I32, lane))

    def transpose(self, vectors: Sequence[IRValue]) -> list[IRValue]:
        """Return the elements of vectors, of which there is a power of two, one of each vector after the other.

        Of as many vectors as a vector has lanes these are the columns of a square.
        """
        half = len(vectors) // 2
        columns = list(vectors)
        # each round interleaves the two halves; log2(lanes) rounds transpose the square
        for _ in range(half.bit_length()):
            pairs = list(zip(columns[:half], columns[half:], strict=True))
            columns = [self._interleave(*pair, start) for pair in pairs for start in (0, self.lanes // 2)]
        return columns

    # the rest is how

    @property
    def _mask_type(self) -> IRValue:
        return ir.VectorType(I1, self.lanes)

    def _is_whole(self, count: IRIndex) -> bool:
        """Whether a count of lanes is known to be all of them."""
        return isinstance(count, int) and count == self.lanes

    def _mask(self, count: IRIndex) -> IRValue:
        """Return a vector of i1, of which the first `count` are set: none below 1, all from the number of lanes on."""
        if isinstance(count, int):
            return constants.mask(self.lanes, count)
        narrow = self.builder.trunc(count, I32)
        undefined = constants.undefined(ir.VectorType(I32, self.lanes))
        first = self.builder.insert_element(undefined, narrow, constants.integer(0))
        limits = self.builder.shuffle_vector(first, undefined, constants.integers((0,) * self.lanes))
        return self.builder.icmp_signed("<", constants.integers(tuple(range(self.lanes))), limits)

    def _masked(self, what: str, result: IRValue, operands: Sequence[IRValue]) -> Any:
        # with an operand for the alignment, as LLVM 20 has it; LLVM 22 has an attribute instead, and translates this
        function = self.intrinsic(f"llvm.masked.{what}.v{self.lanes}f32.p0", result, operands)
        return lambda *values: self.builder.call(function, list(values))

    def _move_tile(self, how: str, tile: int, base: IRValue, step: int) -> None:
        function = self.intrinsic(f"llvm.x86.{how}", ir.VoidType(), [I8, POINTER, I64])
        self.builder.call(function, [ir.Constant(I8, tile), base, ir.Constant(I64, WORD_BYTES * step)])

    def intrinsic(self, name: str, result: IRValue, operands: Sequence[IRValue]) -> ir.Function:
        """Return an intrinsic of LLVM by its whole name, declared the first time.

        Args:
            name: its name.
            result: type that it gives.
            operands: types that it takes.
        """
        if name not in self._intrinsics:
            self._intrinsics[name] = ir.Function(self.module, ir.FunctionType(result, operands), name)
        return self._intrinsics[name]

    def repeated(self, vector: IRValue, size: int, member: int) -> IRValue:
        """Return a vector with one lane of each group of `size` lanes in all lanes of the group."""
        lanes = constants.integers(tuple(lane - lane % size + member for lane in range(self.lanes)))
        return self.builder.shuffle_vector(vector, constants.undefined(vector.type), lanes)

    def _slice(self, vector: IRValue, start: int, count: int) -> IRValue:
        lanes = constants.integers(tuple(range(start, start + count)))
        return self.builder.shuffle_vector(vector, constants.undefined(vector.type), lanes)

    def _interleave(self, left: IRValue, right: IRValue, start: int) -> IRValue:
        """Return left[start], right[start], left[start + 1], … until a vector is full."""
        half = self.lanes // 2
        lanes = tuple(start + lane + side for lane in range(half) for side in (0, self.lanes))
        return self.builder.shuffle_vector(left, right, constants.integers(lanes))
