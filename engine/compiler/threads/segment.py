"""Steps of a plan that one native call runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.emit.jit import Code
from engine.compiler.threads.runner import ROW_WORDS


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
        ValueError: there is no step, or one without a chunk.
    """

    def __init__(self, steps: Sequence[NativeStep]) -> None:
        self.steps = tuple(steps)
        chunks = [step.chunks for step in self.steps]
        if min(chunks, default=0) < 1:
            raise ValueError(f"steps of {chunks} chunks; expected steps, each of at least one chunk")
        rows = [(step.code.address, 8 * step.arguments_offset, step.chunks) for step in self.steps]
        self._rows = np.array(rows, np.int64).reshape(-1, ROW_WORDS)
        self.address = self._rows.ctypes.data
        self.is_wide = max(chunks) > 1

    def __len__(self) -> int:
        return len(self.steps)
