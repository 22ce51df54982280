"""Memory layout of a convolution's staged input and of its weights, in words of bfloat16 or of 8-bit integers.

A chunk of the convolution first copies its input into scratch memory, with its padding around it: the *staged*
input. Channels are contiguous there, several in a word, and each pixel's are filled up. Rows that a stride
separates lie apart: all rows of one remainder modulo the stride, then those of the next, so that what the windows of
neighbouring rows of output begin at lies evenly. A pixel of the output therefore has one number, over all rows: its row
times `row_pixels`, plus its column. Numbers beyond a row's end are pixels that matrix registers compute and that are
discarded.

The sum of a window is cut into *steps* of `step_words` words that are contiguous in the staged input: parts of a
pixel's channels, or, where these are few, of the channels of all pixels in a row of the window.
"""

from dataclasses import dataclass

from engine.compiler.contraction.shapes import ConvShape

MAX_WORDS = 16
"""Maximum words of a step: those of a row of a matrix register."""


@dataclass(frozen=True, slots=True)
class Runs:
    """How the channels of a window's row are cut into steps.

    Attributes:
        pixel_words: words of a staged pixel.
        count: runs of a row of the window: one for each of its pixels, or one for all.
        steps: steps of a run.
        step_words: words of a step.
    """

    pixel_words: int
    count: int
    steps: int
    step_words: int


def choose_runs(shape: ConvShape) -> Runs:
    """Return the way to cut a row of a window that takes the fewest steps, the one with short pixels of several.

    Args:
        shape: shape of the convolution, its channels counted in words.
    """
    words, columns = shape.channels, shape.kernel[1]
    steps = -(-words // MAX_WORDS)
    step_words = -(-words // steps)
    ways = [Runs(steps * step_words, columns, steps, step_words)]
    if shape.dilation[1] == 1 and columns > 1:
        ways += [_joined(columns, words + more) for more in range(3)]
    return min(ways, key=lambda runs: (runs.count * runs.steps, runs.pixel_words))


def _joined(columns: int, pixel_words: int) -> Runs:
    """Return the one run of a row of a window whose pixels take so many words."""
    words = columns * pixel_words
    steps = next(n for n in range(-(-words // MAX_WORDS), words + 1) if words % n == 0)
    return Runs(pixel_words, 1, steps, words // steps)


@dataclass(frozen=True, slots=True)
class StagedLayout:
    """The staged input of a chunk, and packed weights.

    Attributes:
        shape: shape of the convolution, without groups, its channels counted in words.
        rows: rows of output of a chunk.
        runs: how a row of a window is cut into steps.
        width: filters of a block.
    """

    shape: ConvShape
    rows: int
    runs: Runs
    width: int

    @property
    def columns(self) -> int:
        """Pixels of a staged row, a multiple of the stride."""
        stride = self.shape.stride[1]
        return -(-self.shape.padded_size[1] // stride) * stride

    @property
    def row_pixels(self) -> int:
        """Numbers from one row of output to the next, those that belong to no pixel of it among them."""
        return self.columns // self.shape.stride[1]

    @property
    def pixels(self) -> int:
        """Numbers from a chunk's first pixel to its last."""
        return (self.rows - 1) * self.row_pixels + self.shape.size[1]

    @property
    def pixel_step(self) -> int:
        """Words between neighbouring pixels of the output."""
        return self.shape.stride[1] * self.runs.pixel_words

    @property
    def row_words(self) -> int:
        """Words of a staged row."""
        return self.columns * self.runs.pixel_words

    @property
    def input_rows(self) -> int:
        """Rows of input that a chunk reads."""
        return self.shape.rows_under(self.rows)

    @property
    def plane_rows(self) -> int:
        """Staged rows of each remainder modulo the stride."""
        return -(-self.input_rows // self.shape.stride[0])

    @property
    def plane_words(self) -> int:
        """Words of all rows."""
        return self.shape.stride[0] * self.plane_rows * self.row_words

    @property
    def starts(self) -> tuple[int, ...]:
        """Words from a pixel's place to each run of its window."""
        shape, stride = self.shape, self.shape.stride[0]
        rows = [row * shape.dilation[0] for row in range(shape.kernel[0])]
        columns = [column * shape.dilation[1] for column in range(self.runs.count)]
        return tuple(
            (row % stride * self.plane_rows + row // stride) * self.row_words + column * self.runs.pixel_words
            for row in rows
            for column in columns
        )

    @property
    def run_words(self) -> int:
        """Words of a run."""
        return self.runs.steps * self.runs.step_words

    @property
    def steps(self) -> int:
        """Steps of a window."""
        return len(self.starts) * self.runs.steps

    def staged_words(self, pixels: int) -> int:
        """Return the words that are read for so many pixels, and those that rows take."""
        return max(self.plane_words, max(self.starts) + (pixels - 1) * self.pixel_step + self.run_words)

    @property
    def blocks(self) -> int:
        """Blocks of filters, the last one perhaps not full."""
        return -(-self.shape.filters // self.width)

    @property
    def block_words(self) -> int:
        """Words of a block's weights."""
        return self.steps * self.runs.step_words * self.width
