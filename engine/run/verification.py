"""Verification: a compiled program is used only after its results agree with the reference implementation."""

from dataclasses import dataclass
from enum import Enum

from engine.errors import BuildError
from engine.spec import TensorSpec, spell

REFUSALS_KEPT = 64
"""Maximum recorded refusals: a client that keeps sending new shapes cannot exhaust memory."""


class Verify(Enum):
    """When compiled programs are compared with the reference implementation."""

    LOAD = "load"
    """Before a program is used for the first time; not again where `KUIPER_CACHE` has it that the very same agreed."""
    ALWAYS = "always"
    """Before a program's first use in every process."""
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
        raise BuildError(f"verify: {wanted!r} is unknown; expected one of {names}") from error


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rejected compiled program; the reference implementation runs instead.

    Attributes:
        inputs: the input types.
        operator: name of the operator at fault; None where the program could not be compiled.
        type: its PNNX type.
        fused: names of the other operators whose work its kernel does.
        difference: largest absolute difference from the reference result, over its largest absolute value; None for
            results that are not finite and programs that could not be compiled.
        reason: the error, in words.
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
    """Verification results of a graph's programs.

    Attributes:
        checked: programs that were compared with the reference implementation.
        recalled: programs that were not, as another process had compared the very same, and they agreed.
        unchecked: programs that could not be compared, for lack of an input on which the reference implementation runs.
        refused: programs that are not used, the latest `REFUSALS_KEPT` of them.
        refused_count: total refusals.
    """

    checked: int = 0
    recalled: int = 0
    unchecked: int = 0
    refused: tuple[Refusal, ...] = ()
    refused_count: int = 0
