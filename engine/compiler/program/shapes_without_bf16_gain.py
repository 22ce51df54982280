"""Cache of input shapes without bf16 gain: no kernel for them would compute in bf16."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from engine.compiler.program.assembler import assembling
from engine.compiler.program.faults import FAULTS
from engine.compiler.program.program_cache import InputKey
from engine.compiler.selection import Selector
from engine.model.build_clock import BuildClock
from engine.precision import Precision
from engine.run.plan import Plan

_MOST_KNOWN = 512
"""Maximum cached inputs (LRU)."""


class ShapesWithoutBf16Gain:
    """Inputs whose program for BF16 would be in float32.

    Args:
        leaving: names of the operands that leave the graph.
    """

    def __init__(self, leaving: Sequence[str]) -> None:
        self._leaving = tuple(leaving)
        self._known: OrderedDict[InputKey, None] = OrderedDict()

    def __contains__(self, key: InputKey) -> bool:
        """Return whether inputs are cached."""
        return key in self._known

    def look(self, key: InputKey, plan: Plan, selector: Selector, clock: BuildClock) -> bool:
        """Return whether a program for inputs has no bf16 kernel, and cache it; builds the program without memory.

        Args:
            key: the inputs.
            plan: their plan.
            selector: options of kernel selection, with BF16.
            clock: checked before each operator.
        """
        slots = [plan.slots[name] for name in self._leaving]
        try:
            with np.errstate(all="ignore"), assembling(plan, slots, selector, clock) as assembler:
                builder = assembler.build()
        except FAULTS:  # reported by its compilation
            return False
        if any(call.precision is Precision.BF16 for call in builder.calls):
            return False
        self._known[key] = None
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return True
