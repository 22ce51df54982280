"""Verification of programs against the reference implementation, with a cache shared by processes."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from engine.compiler.memory.release import release_heap
from engine.compiler.program.program import Program
from engine.compiler.program.verification_cache import VerificationCache
from engine.compiler.program.verifier import verify
from engine.run.plan import InputSpecs
from engine.run.verification import REFUSALS_KEPT, Refusal, Verification

_logger = logging.getLogger(__name__)


class Checker:
    """Verifies the programs of one graph, and records the results.

    Args:
        names: operand names of the graph's inputs.
        leaving: names of the operands that leave the graph.
        verifies: whether programs are compared with the reference implementation at all.
        verification_cache: programs that an earlier process verified; None for no cache.

    Attributes:
        verification: the results so far.
    """

    def __init__(
        self,
        names: Sequence[str],
        leaving: Sequence[str],
        *,
        verifies: bool,
        verification_cache: VerificationCache | None,
    ) -> None:
        self._names = tuple(names)
        self._leaving = tuple(leaving)
        self._verifies = verifies
        self._cache = verification_cache
        self.verification = Verification()

    def passes(self, program: Program, inputs: InputSpecs) -> bool:
        """Return whether a program for such inputs may be used; a refusal is recorded and logged."""
        if not self._verifies:
            return True
        key = None if self._cache is None else self._cache.key(program, inputs)
        known = self.verification
        if self._cache is not None and key is not None and self._cache.contains(key):
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
        if self._cache is not None and key is not None and verdict.is_checked:
            self._cache.add(key)
        return True

    def refuse(self, refusal: Refusal) -> None:
        """Record that a program is not used, and why."""
        known = self.verification
        kept = (*known.refused, refusal)[-REFUSALS_KEPT:]
        self.verification = replace(known, refused=kept, refused_count=known.refused_count + 1)
        _logger.warning(
            "a compiled program is not used, the reference implementation runs instead: %s", refusal
        )
