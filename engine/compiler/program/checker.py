"""Tells which programs may be used: compares them with the numpy layers, or recalls that another process did."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from engine.compiler.memory.release import release_heap
from engine.compiler.program.program import Program
from engine.compiler.program.verification_cache import VerificationCache
from engine.compiler.program.verifier import verify
from engine.executor import InputSpecs
from engine.verification import REFUSALS_KEPT, Refusal, Verification

_logger = logging.getLogger(__name__)


class Checker:
    """Checks the programs of one graph, and keeps what came of it.

    Args:
        names: operand names of the graph's inputs.
        leaving: names of the operands that leave the graph.
        verifies: whether programs are compared with the numpy layers at all.
        marks: tell which programs were compared before, by another process, and need not be again; None for none.

    Attributes:
        verification: what came of it so far.
    """

    def __init__(
        self, names: Sequence[str], leaving: Sequence[str], *, verifies: bool, marks: VerificationCache | None
    ) -> None:
        self._names = tuple(names)
        self._leaving = tuple(leaving)
        self._verifies = verifies
        self._marks = marks
        self.verification = Verification()

    def passes(self, program: Program, inputs: InputSpecs) -> bool:
        """Tell whether a program for such inputs may be used; where it may not, that is noted and logged."""
        if not self._verifies:
            return True
        mark = None if self._marks is None else self._marks.of(program, inputs)
        known = self.verification
        if self._marks is not None and mark is not None and self._marks.is_set(mark):
            self.verification = replace(known, recalled=known.recalled + 1)
            return True
        verdict = verify(program, inputs, self._names, self._leaving)
        release_heap()
        known = self.verification
        self.verification = replace(
            known,
            checked=known.checked + verdict.is_checked,
            unchecked=known.unchecked + (not verdict.is_checked),
        )
        if verdict.refusal is not None:
            self.refuse(verdict.refusal)
            return False
        if self._marks is not None and mark is not None and verdict.is_checked:
            self._marks.set(mark)
        return True

    def refuse(self, refusal: Refusal) -> None:
        """Note that a program is not used, and why."""
        known = self.verification
        kept = (*known.refused, refusal)[-REFUSALS_KEPT:]
        self.verification = replace(known, refused=kept, refused_count=known.refused_count + 1)
        _logger.warning("a compiled program is not used, the numpy layers run in its place: %s", refusal)
