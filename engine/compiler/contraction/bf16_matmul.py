"""Products of two computed matrices, operands rounded to bfloat16: a (rows x depth) by b (depth x columns).

Arguments: a, b, output, the epilogue's operands, scratch. a's columns and the output's are contiguous, and either the
columns of b or its rows. Each chunk, some rows of one product of the batch, stages its part of a and packs b in scratch
memory, and goes on as a convolution whose filters are b's columns (`staged_loops.py`).

For the epilogue, the two axes of the batch are images and rows, the product's rows are pixels, its columns channels.
"""

from dataclasses import dataclass, replace

from engine.compiler.contraction.arithmetic import BF16
from engine.compiler.contraction.bf16_panels import Bf16Panels
from engine.compiler.contraction.epilogue import NOTHING, Broadcast, Epilogue, Output
from engine.compiler.contraction.shapes import ConvShape, ImplicitPadding, MatrixShape
from engine.compiler.contraction.staged_loops import StagedChunk, StagedLoops, whole_lines
from engine.compiler.contraction.staging import Staging
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import Region


@dataclass(frozen=True, slots=True, kw_only=True)
class Bf16MatrixProduct:
    """A batch of matrix products of one exact shape.

    Attributes:
        shape: shape of the products.
        a_strides: elements between a's batches (two axes), rows and columns.
        b_strides: the same of b.
        out_strides: elements between the output's batches (two axes) and rows.
        rows: rows of a chunk.
        has_tiles: whether products are made in matrix registers; else in vectors.
        group: numbers of rows, and of vectors of columns: registers of a product.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
    """

    shape: MatrixShape
    a_strides: tuple[int, int, int, int]
    b_strides: tuple[int, int, int, int]
    out_strides: tuple[int, int, int]
    rows: int
    has_tiles: bool
    group: tuple[int, int]
    lanes: int
    epilogue: Epilogue = NOTHING

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return self.shape.regions(self.a_strides, self.b_strides, self.out_strides, self.epilogue)

    @property
    def loops(self) -> StagedLoops:
        """The loops of a chunk."""
        shape = ConvShape(
            images=1, size=(self.shape.rows, 1), channels=self.shape.depth, filters=self.shape.columns
        )
        return StagedLoops(
            shape=shape.in_words(BF16.per_word),
            rows=self.rows,
            has_tiles=self.has_tiles,
            group=self.group,
            lanes=self.lanes,
        )

    @property
    def panels(self) -> Bf16Panels:
        """How b is packed."""
        return Bf16Panels(self.loops.staged, self.shape.depth, self.b_strides[2:], self.lanes)

    @property
    def _row_parts(self) -> int:
        return -(-self.shape.rows // self.rows)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return self.shape.products * self._row_parts

    @property
    def _sizes(self) -> tuple[int, int, int, int]:
        """Words of sums, of zeros that sums start with, of packed b and of staged rows of a."""
        loops = self.loops
        return (
            loops.sum_words,
            whole_lines(loops.staged.blocks * loops.staged.width),
            whole_lines(self.panels.words),
            whole_lines(loops.staged_words),
        )

    @property
    def scratch(self) -> int:
        """Words of scratch memory of a thread."""
        return sum(self._sizes)

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        loops, (sum_words, start_words, panel_words, _) = self.loops, self._sizes
        outer, inner, part = e.unravel(e.chunk, (*self.shape.batch, self._row_parts))
        at = outer, inner
        a = self._of_product(e, 0, at, self.a_strides)
        b = self._of_product(e, 1, at, self.b_strides)
        count = len(self.epilogue.operands)
        sums = e.address(e.argument(3 + count), e.mul(e.thread, self.scratch))
        starts = e.address(sums, sum_words)
        packed = e.address(starts, start_words)
        staged = e.address(packed, panel_words)
        first = e.mul(part, self.rows)
        e.fill(starts, 0, start_words)
        staging = Staging(
            arithmetic=BF16,
            padding=ImplicitPadding((self.shape.rows, 1), (0, 0)),
            strides=(0, self.a_strides[2], 0),
            channels=self.shape.depth,
            rows=loops.staged.plane_rows,
            columns=1,
            words=loops.staged.runs.pixel_words,
            rounds=True,
        )
        staging.emit(e, a, first, staged, loops.staged_words)
        self.panels.emit(e, b, packed)
        chunk = StagedChunk(
            weights=packed,
            numbers=starts,
            output=self._output(e, at),
            sums=sums,
            staged=staged,
            image=0,
            first_row=first,
            rows=e.minimum(e.sub(self.shape.rows, first), self.rows),
        )
        loops.emit(e, chunk, 0, loops.blocks)

    def _output(self, e: Emitter, at: tuple[IRIndex, IRIndex]) -> Output:
        """Return where a product's results go; addresses are those of the product, so that the batch counts no more."""
        described = tuple(
            replace(operand, strides=(0, operand.strides[2], 0))
            if operand.broadcast is Broadcast.FULL
            else replace(operand, strides=(0,))
            for operand in self.epilogue.operands
        )
        operands = [
            self._of_product(e, 3 + place, at, (*operand.strides, 0, 0))
            if operand.broadcast is not Broadcast.SCALAR
            else e.argument(3 + place)
            for place, operand in enumerate(self.epilogue.operands)
        ]
        out = self._of_product(e, 2, at, self.out_strides)
        epilogue = replace(self.epilogue, operands=described)
        return Output(out, (0, self.out_strides[2], 0), epilogue, operands)

    @staticmethod
    def _of_product(e: Emitter, place: int, at: tuple[IRIndex, IRIndex], strides: tuple[int, ...]) -> IRValue:
        """Return where an argument's part of a product of the batch begins."""
        return e.address(e.argument(place), e.mul(at[0], strides[0]), e.mul(at[1], strides[1]))
