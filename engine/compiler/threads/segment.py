"""Steps of a plan that one native call runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.emit.jit import Code
from engine.compiler.threads.runner import CHUNK_BITS, ROW_WORDS


@dataclass(frozen=True, slots=True)
class NativeStep:
    """One kernel at work.

    Attributes:
        code: code of the kernel.
        arguments_offset: where the step's arguments begin in the table of addresses, counted in addresses.
        chunks: parts that its work is split into, at least 1.
    """

    code: Code
    arguments_offset: int
    chunks: int


class Segment:
    """A list of native steps. Immutable, and run by any number of threads at once.

    Args:
        steps: in the order of their work, at least one.

    Attributes:
        steps: the same.
        address: address of the steps in the form that native code reads.
        is_wide: whether a step has work for more than one thread.

    Raises:
        ValueError: there is no step, or a number of one makes no sense.
    """

    def __init__(self, steps: Sequence[NativeStep]) -> None:
        self.steps = tuple(steps)
        if not self.steps:
            raise ValueError("a segment without steps; expected at least one")
        for place, step in enumerate(self.steps):
            if not 1 <= step.chunks < 2**CHUNK_BITS or step.arguments_offset < 0:
                raise ValueError(
                    f"step {place}: {step.chunks} chunks, arguments at {step.arguments_offset}; "
                    f"expected 1 to {2**CHUNK_BITS - 1} chunks and a place that is not negative"
                )
        rows = [(step.code.address, 8 * step.arguments_offset, step.chunks) for step in self.steps]
        self._rows = np.array(rows, np.int64).reshape(-1, ROW_WORDS)
        self.address = self._rows.ctypes.data
        self.is_wide = any(step.chunks > 1 for step in self.steps)

    def __len__(self) -> int:
        return len(self.steps)
