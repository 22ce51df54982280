"""Inputs for which bfloat16 is asked for, and that no kernel would round anything of: few processors are faster so."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from engine.build_clock import BuildClock
from engine.compiler.program.assembler import assembling
from engine.compiler.program.faults import FAULTS
from engine.compiler.program.kept_programs import InputKey
from engine.compiler.selection import Selector
from engine.plan import Plan
from engine.precision import Precision

_MOST_KNOWN = 512
"""Inputs that are remembered, those that were looked at last."""


class ShapesWithoutBf16Gain:
    """Remembers such inputs: a program in float32 is all that can be compiled for them.

    Args:
        leaving: names of the operands that leave the graph.
    """

    def __init__(self, leaving: Sequence[str]) -> None:
        self._leaving = tuple(leaving)
        self._known: OrderedDict[InputKey, None] = OrderedDict()

    def __contains__(self, key: InputKey) -> bool:
        """Tell whether inputs are known to be such."""
        return key in self._known

    def look(self, key: InputKey, plan: Plan, selector: Selector, clock: BuildClock) -> bool:
        """Return whether inputs are such, and remember it; their program is built up to its memory layout.

        Args:
            key: the inputs.
            plan: what runs on them.
            selector: what kernels are chosen for, in BF16.
            clock: asked before each operator.
        """
        slots = [plan.slots[name] for name in self._leaving]
        try:
            with np.errstate(all="ignore"), assembling(plan, slots, selector, clock) as assembler:
                builder = assembler.build()
        except FAULTS:  # whoever compiles it tells of that
            return False
        if any(call.precision is Precision.BF16 for call in builder.calls):
            return False
        self._known[key] = None
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return True
