"""One layer of an RNN, GRU or LSTM over a whole sequence, forwards or both ways: the loop over time is in the kernel.

Arguments: for each direction the products W x + b, the packed weights of the state and, of a GRU, the packed bias of
its new gate; then the initial hidden (and, of an LSTM, cell) states where they are given; the output of every step,
the final hidden and the final cell states, as far as requested; at last scratch memory. States are
(directions, batch, hidden) row by row.

Hidden units go in blocks of as many as a vector has lanes. The products of a step hold the gates of a block side by
side, [block][gate][lane], and so do the weights, [group][unit of the state][block of the group][gate][lane]: what a
register tile computes is all that the cells of its blocks wait for. The state before a step and the one after it lie
in scratch memory, since every unit reads the whole of the one before.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.compiler.contraction.tile import Axis, Tile, emit_tile
from engine.compiler.emit.activations import relu
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.emit.vector_math import tanh
from engine.compiler.kernels.cells import GATES, grouped, gru_cell, interleaved, lstm_cell
from engine.compiler.memory.alignment import aligned_zeros
from engine.compiler.memory.region import Region, line
from engine.dtypes import Array

_WIDE, _WIDEST = 4, 8
"""Vectors of a tile; the latter where one row alone has to keep the multipliers busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentShape:
    """Shape of a recurrent layer.

    Attributes:
        cell: kind of cell: a key of `GATES`.
        steps: length of the sequence.
        batch: sequences.
        hidden: units.
        directions: 1, or 2: forwards and backwards.
    """

    cell: str
    steps: int
    batch: int
    hidden: int
    directions: int

    @property
    def gates(self) -> int:
        """Gates of a cell."""
        return GATES[self.cell]


@dataclass(frozen=True, slots=True)
class RecurrentChunk:
    """Operands of a call: some rows of the batch in one direction.

    Attributes:
        direction: 0 forwards, 1 backwards.
        rows: first row and the end of them.
        products: address of the direction's products.
        weights: address of its weights.
        bias: address of a GRU's new gate's bias.
        out: address of the output of every step.
        hidden: addresses, in scratch memory, of the two hidden states.
        cell: address, in scratch memory, of the cell state.
    """

    direction: IRIndex
    rows: tuple[IRIndex, IRIndex]
    products: IRValue
    weights: IRValue
    bias: IRValue | None
    out: IRValue | None
    hidden: tuple[IRValue, IRValue]
    cell: IRValue


@dataclass(frozen=True, slots=True)
class TimeStep:
    """One step in time of a chunk.

    Attributes:
        time: which one.
        before: address of the hidden state before it.
        after: address of the hidden state after it.
    """

    time: IRIndex
    before: IRValue
    after: IRValue


@dataclass(frozen=True, slots=True)
class UnitGroup:
    """Blocks of units that a tile covers.

    Attributes:
        place: which group.
        lanes: lanes of each of its blocks that hold units.
    """

    place: IRIndex
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A recurrent layer of one exact shape.

    Attributes:
        shape: shape of the layer.
        products: elements between steps and between sequences of the products.
        out: elements between steps, sequences and directions of the output; None if not requested.
        has_state: whether initial states are given; else they are 0.
        gives: whether the final hidden and the final cell state are requested.
        tile: register tile: rows of the batch and vectors, a multiple of the gates.
        rows: rows of the batch in one chunk.
        lanes: float32 lanes of a vector.
    """

    shape: RecurrentShape
    products: tuple[int, int]
    out: tuple[int, int, int] | None
    has_state: bool
    gives: tuple[bool, bool]
    tile: Tile
    rows: int
    lanes: int

    @classmethod
    def tuned(
        cls,
        target: Target,
        threads: int,
        *,
        shape: RecurrentShape,
        products: tuple[int, int],
        out: tuple[int, int, int] | None,
        has_state: bool,
        gives: tuple[bool, bool],
    ) -> "Recurrence":
        """Return the kernel with tile and chunks chosen for a target and the threads of a run."""
        batch, blocks = shape.batch, -(-shape.hidden // target.lanes)
        # one row's weights come straight from memory into the multiplication: they take no registers
        widest = _WIDEST if batch == 1 or target.registers > 2 * _WIDEST else _WIDE
        wide = widest if batch < _WIDE else _WIDE
        vectors = shape.gates * min(blocks, max(1, wide // shape.gates))
        pixels = max(1, min(batch, (target.registers - 1 - vectors) // vectors))
        tiles = -(-batch // pixels)
        parts = min(tiles, max(1, threads // shape.directions))
        return cls(
            shape=shape,
            products=products,
            out=out,
            has_state=has_state,
            gives=gives,
            tile=Tile(pixels, vectors),
            rows=min(batch, -(-tiles // parts) * pixels),
            lanes=target.lanes,
        )

    @property
    def _padded(self) -> int:
        """Units with those that fill the last block."""
        return -(-self.shape.hidden // self.lanes) * self.lanes

    @property
    def width(self) -> int:
        """Elements of one step's products of one sequence."""
        return self.shape.gates * self._padded

    @property
    def _unit_blocks(self) -> int:
        """Blocks of a group."""
        return self.tile.vectors // self.shape.gates

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        weights, bias = map(line, self.packed_sizes)
        products = Region((self.shape.steps, self.shape.batch, self.width), (*self.products, 1))
        own = (products, weights, bias) if self.shape.cell == "gru" else (products, weights)
        size = self.shape.directions * self.shape.batch * self.shape.hidden
        given = [line(size)] * (self._states if self.has_state else 0)
        finals = [line(size, is_written=True)] * sum(self.gives)
        if self.out is None:
            return *own * self.shape.directions, *given, *finals
        shape = self.shape.steps, self.shape.batch, self.shape.directions, self.shape.hidden
        return *own * self.shape.directions, *given, Region(shape, (*self.out, 1), is_written=True), *finals

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of a direction's packed weights of the state, and of the bias of a GRU's new gate."""
        return self.width * self.shape.hidden, self._padded

    @property
    def scratch(self) -> int:
        """Elements of two hidden states and, of an LSTM, a cell state of a chunk's rows."""
        return (2 + (self.shape.cell == "lstm")) * self.rows * self._padded

    @property
    def _parts(self) -> tuple[int, int]:
        """Parts that directions and batch are split into."""
        return self.shape.directions, -(-self.shape.batch // self.rows)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return self._parts[0] * self._parts[1]

    @property
    def _states(self) -> int:
        """How many kinds of state a cell has."""
        return 2 if self.shape.cell == "lstm" else 1

    def emit(self, e: Emitter) -> None:
        """Write the kernel: the loop over time."""
        direction, part = e.unravel(e.chunk, self._parts)
        chunk, states, finals = self._arguments(e, direction, part)
        self._start(e, chunk, states)
        size = self.rows * self._padded
        with e.loop(0, self.shape.steps) as loop:
            time = loop.index
            if self.shape.directions == 2:
                backwards = e.sub(self.shape.steps - 1, loop.index)
                time = e.select(e.compare("==", direction, 0), time, backwards)
            _, odd = e.divmod(loop.index, 2)
            before = e.address(chunk.hidden[0], e.mul(odd, size))
            after = e.address(chunk.hidden[0], e.sub(size, e.mul(odd, size)))
            for group in self._each_group(e):
                for first, count in self._each_tile(e, chunk.rows):
                    self._emit_tile(e, chunk, TimeStep(time, before, after), group, (first, count))
        for source, target in zip((chunk.hidden[self.shape.steps % 2], chunk.cell), finals, strict=True):
            if target is not None:
                for row, offset in self._each_row(e, chunk):
                    e.copy(e.address(source, offset), e.address(target, row), self.shape.hidden)

    def _arguments(
        self, e: Emitter, direction: IRIndex, part: IRIndex
    ) -> tuple[RecurrentChunk, list[IRValue], list[IRValue | None]]:
        """Return the chunk, the given initial states, and the addresses of the requested final ones."""
        place = 0

        def take() -> IRValue:
            nonlocal place
            place += 1
            return e.argument(place - 1)

        own = [
            [take() for _ in range(3 if self.shape.cell == "gru" else 2)]
            for _ in range(self.shape.directions)
        ]
        if self.shape.directions == 2:
            is_first = e.compare("==", direction, 0)
            mine = [e.select(is_first, *pair) for pair in zip(*own, strict=True)]
        else:
            mine = own[0]
        states = [take() for _ in range(self._states if self.has_state else 0)]
        out = take() if self.out is not None else None
        finals = [take() if wanted else None for wanted in self.gives]
        scratch = e.address(take(), e.mul(e.thread, self.scratch))
        first = e.mul(part, self.rows)
        rows = first, e.minimum(e.add(first, self.rows), self.shape.batch)
        size = self.rows * self._padded
        hidden = scratch, e.address(scratch, size)
        cell = e.address(scratch, 2 * size) if self.shape.cell == "lstm" else scratch
        chunk = RecurrentChunk(
            direction=direction,
            rows=rows,
            products=mine[0],
            weights=mine[1],
            bias=mine[2] if self.shape.cell == "gru" else None,
            out=out,
            hidden=hidden,
            cell=cell,
        )
        return chunk, states, finals

    def _each_row(self, e: Emitter, chunk: RecurrentChunk) -> Iterator[tuple[IRIndex, IRIndex]]:
        """Write a loop over a chunk's rows, as offsets in the states outside and in scratch memory."""
        with e.loop(*chunk.rows) as row:
            outside = e.add(e.mul(chunk.direction, self.shape.batch), row.index)
            yield e.mul(outside, self.shape.hidden), e.mul(e.sub(row.index, chunk.rows[0]), self._padded)

    def _start(self, e: Emitter, chunk: RecurrentChunk, states: list[IRValue]) -> None:
        """Bring the initial states into scratch memory; units that are not there stay 0, which is no slow number."""
        for row, offset in self._each_row(e, chunk):
            for place, target in enumerate((chunk.hidden[0], chunk.cell)[: self._states]):
                to = e.address(target, offset)
                if states:
                    e.copy(e.address(states[place], row), to, self.shape.hidden)
                e.fill(to, self.shape.hidden if states else 0, self._padded)

    def _each_group(self, e: Emitter) -> Iterator[UnitGroup]:
        """Write the loop over groups that are full; the last one, if it is not, is written after it."""
        size = self._unit_blocks * self.lanes
        full, rest = divmod(self.shape.hidden, size)
        if full:
            with e.loop(0, full) as loop:
                yield UnitGroup(loop.index, (self.lanes,) * self._unit_blocks)
        if rest:
            yield UnitGroup(full, tuple(min(self.lanes, rest - done) for done in range(0, rest, self.lanes)))

    def _each_tile(self, e: Emitter, rows: tuple[IRIndex, IRIndex]) -> Iterator[tuple[IRIndex, int]]:
        """Write the loop over a chunk's tiles, as first row and count; the one that isn't full is written after it."""
        first, last = rows
        whole = self.shape.batch - self.shape.batch % self.tile.pixels
        if whole:
            with e.loop(first, e.minimum(last, whole), self.tile.pixels) as loop:
                yield loop.index, self.tile.pixels
        if whole < self.shape.batch:
            with e.when(e.compare(">", last, whole)):
                yield whole, self.shape.batch - whole

    def _emit_tile(
        self, e: Emitter, chunk: RecurrentChunk, step: TimeStep, group: UnitGroup, rows: tuple[IRIndex, int]
    ) -> None:
        """Write the gates of some rows and blocks, and the cells that wait for them."""
        first, count = rows
        vectors = len(group.lanes) * self.shape.gates
        unit = e.mul(group.place, self._unit_blocks * self.lanes)
        weights = e.address(
            chunk.weights, e.mul(group.place, self.shape.hidden * self.tile.vectors * self.lanes)
        )
        time, sequence = e.mul(step.time, self.products[0]), e.mul(first, self.products[1])
        products = e.address(chunk.products, time, sequence, e.mul(unit, self.shape.gates))
        start = [
            self._first_sum(e, chunk, products, row, vector, unit)
            for row in range(count)
            for vector in range(vectors)
        ]
        state = e.mul(e.sub(first, chunk.rows[0]), self._padded)
        axes = (Axis(self.shape.hidden, 1, vectors * self.lanes),)
        before = e.address(step.before, state)
        sums = emit_tile(e, Tile(count, vectors), axes, before, self._padded, weights, start)
        for row in range(count):
            for block, lanes in enumerate(group.lanes):
                number = row * vectors + block * self.shape.gates
                place = e.add(unit, block * self.lanes)
                offset = e.add(state, row * self._padded, place)
                inner = e.address(products, self._product(row, (block + 1) * self.shape.gates - 1))
                value = self._cell(e, chunk, step, sums[number : number + self.shape.gates], offset, inner)
                e.store(value, step.after, offset)
                self._store(e, chunk, value, (step.time, e.add(first, row)), place, lanes)

    def _product(self, row: int, vector: int) -> int:
        """Return where the products of a tile's row and vector lie."""
        return row * self.products[1] + vector * self.lanes

    def _first_sum(
        self, e: Emitter, chunk: RecurrentChunk, products: IRValue, row: int, vector: int, unit: IRIndex
    ) -> IRValue:
        """Write the initial value of a sum over the state: the products, or for a GRU's new gate the bias."""
        block, gate = divmod(vector, self.shape.gates)
        if self.shape.cell == "gru" and gate == 2:
            return e.load(chunk.bias, unit, block * self.lanes)
        return e.load(products, self._product(row, vector))

    def _store(
        self,
        e: Emitter,
        chunk: RecurrentChunk,
        value: IRValue,
        at: tuple[IRIndex, IRIndex],
        unit: IRIndex,
        lanes: int,
    ) -> None:
        """Write a block of the output of a step and a sequence, if requested."""
        if chunk.out is not None and self.out is not None:
            offsets = [e.mul(*pair) for pair in zip((*at, chunk.direction), self.out, strict=True)]
            e.store(value, chunk.out, *offsets, unit, count=lanes)

    def _cell(
        self,
        e: Emitter,
        chunk: RecurrentChunk,
        step: TimeStep,
        gates: list[IRValue],
        offset: IRIndex,
        inner: IRValue,
    ) -> IRValue:
        """Write one block of cells; returns the new hidden state.

        Args:
            e: the kernel.
            chunk: the current chunk.
            step: the step.
            gates: sums of the gates.
            offset: the block's place in the states.
            inner: address of the products of a GRU's new gate.
        """
        if self.shape.cell == "lstm":
            hidden, cell = lstm_cell(e, gates, e.load(chunk.cell, offset))
            e.store(cell, chunk.cell, offset)
            return hidden
        if self.shape.cell == "gru":
            return gru_cell(e, gates, e.load(inner), e.load(step.before, offset))
        return tanh(e, gates[0]) if self.shape.cell == "tanh" else relu(e, gates[0])

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return (self._unit_blocks, self.lanes)

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack a direction's weights of the state (gates · hidden, hidden) and the bias of a GRU's new gate."""
        packed = grouped(interleaved(weight, self.shape.gates, self.lanes), self._unit_blocks)
        starts = aligned_zeros((self._padded,))
        if bias is not None:
            starts[: self.shape.hidden] = bias
        return packed, starts
