"""The compiled programs of one graph, one per combination of input shapes, the latest kept."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from engine.backend import PROGRAMS_KEPT
from engine.compiler.action import NativeSteps
from engine.compiler.program import Program, compile_plan
from engine.compiler.target import host_target
from engine.compiler.weights import PackedStore
from engine.plan import Plan
from engine.spec import TensorSpec

Shapes = tuple[TensorSpec, ...]


class Programs:
    """Compiles plans the first time that their shapes come. Safe to use from any thread.

    Each program has arenas of its own; all share packed weights.

    Args:
        leaving: names of the operands that leave the graph.
        threads: threads that share a run.
        kept: programs that are kept, least recently used dropped first.
    """

    def __init__(self, leaving: Sequence[str], threads: int, kept: int = PROGRAMS_KEPT) -> None:
        self._leaving = tuple(leaving)
        self._threads = threads
        self._kept = kept
        self._lock = threading.Lock()
        self._compiling = threading.Lock()
        self._known: OrderedDict[Shapes, Program | None] = OrderedDict()
        self._packed = PackedStore()

    def find(self, inputs: Shapes, plan: Plan) -> Program | None:
        """Return the program of a plan for inputs of given shapes; None where kernels can do nothing of it."""
        with self._lock:
            if inputs in self._known:
                self._known.move_to_end(inputs)
                return self._known[inputs]
        with self._compiling:
            if inputs not in self._known:
                self._add(inputs, self._compile(plan))
            return self._known[inputs]

    def _add(self, inputs: Shapes, program: Program | None) -> None:
        with self._lock:
            self._known[inputs] = program
            if len(self._known) > self._kept:
                self._known.popitem(last=False)

    def _compile(self, plan: Plan) -> Program | None:
        slots = [plan.slots[name] for name in self._leaving]
        # constants may be out of range here as in a run
        with np.errstate(all="ignore"):
            program = compile_plan(plan, slots, host_target(), self._threads, self._packed)
        return program if any(isinstance(action, NativeSteps) for action in program.actions) else None
