"""Results of verification: a compiled program is used only after its results agreed with those of the numpy layers."""

from dataclasses import dataclass
from enum import Enum

from engine.errors import BuildError
from engine.spec import TensorSpec, spell

REFUSALS_KEPT = 64
"""Refusals that are kept for reports: bounded, so that a client that keeps sending new shapes cannot exhaust memory."""


class Verify(Enum):
    """When compiled programs are compared with the numpy layers."""

    LOAD = "load"
    """Before a program is used for the first time; not again where `KUIPER_CACHE` has it that the very same agreed."""
    ALWAYS = "always"
    """Before a program is used for the first time, in every process anew."""
    OFF = "off"
    """Never."""


def choose_verify(wanted: Verify | str) -> Verify:
    """Return when to verify.

    Raises:
        BuildError: there is no such choice.
    """
    try:
        return Verify(wanted)
    except ValueError as error:
        names = ", ".join(item.value for item in Verify)
        raise BuildError(f"verify: {wanted!r} is not known; expected one of {names}") from error


@dataclass(frozen=True, slots=True)
class Refusal:
    """A compiled program that is not used: the numpy layers run in its place.

    Attributes:
        inputs: what it was compiled for.
        operator: name of the operator at fault; None where the program could not be compiled.
        type: its PNNX type.
        fused: names of the other operators whose work its kernel does.
        difference: largest absolute difference from the numpy layer, over that layer's largest absolute value; None
            where there is none, as for results that are not finite or programs that could not be compiled.
        reason: what is wrong, in words.
    """

    inputs: tuple[TensorSpec, ...]
    operator: str | None
    type: str | None
    fused: tuple[str, ...]
    difference: float | None
    reason: str

    def __str__(self) -> str:
        place = f"{self.type} {self.operator}: " if self.operator is not None else ""
        return f"for inputs {spell(self.inputs)}: {place}{self.reason}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What the programs of a graph came to.

    Attributes:
        checked: programs that were compared with the numpy layers.
        recalled: programs that were not, as another process had compared the very same, and they agreed.
        unchecked: programs that could not be compared, as no input was found that the numpy layers run on.
        refused: programs that are not used, the latest `REFUSALS_KEPT` of them.
        refused_count: how many there were in all.
    """

    checked: int = 0
    recalled: int = 0
    unchecked: int = 0
    refused: tuple[Refusal, ...] = ()
    refused_count: int = 0
