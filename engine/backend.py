"""Which backend runs a graph: compiled kernels, or each layer's numpy forward."""

import importlib.util
import os
from dataclasses import dataclass
from enum import Enum

from engine.errors import BuildError


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a compiled plan takes.

    Attributes:
        arena_bytes: bytes of intermediate tensors of one run, laid out by lifetime.
        least_bytes: most bytes of them that are in use at once; no layout takes less.
        scratch_bytes: bytes of scratch memory of one run.
        constant_bytes: bytes of packed weights.
        native: operators whose work kernels do.
        numpy: operators that numpy runs.
    """

    arena_bytes: int
    least_bytes: int
    scratch_bytes: int
    constant_bytes: int
    native: int
    numpy: int


PROGRAMS_KEPT = 16
"""Programs kept per graph unless it is told otherwise, one per combination of input shapes."""

VARIABLE = "KUIPER_BACKEND"
"""Environment variable that chooses where the caller does not."""


class Backend(Enum):
    """What runs a graph's layers."""

    NUMPY = "numpy"
    """Every layer's numpy forward."""
    NATIVE = "native"
    """Compiled kernels; numpy for what they do not know."""
    AUTO = "auto"
    """NATIVE where llvmlite is installed and knows the processor, else NUMPY."""


def choose_backend(wanted: Backend | str | None = None) -> Backend:
    """Return NUMPY or NATIVE.

    Args:
        wanted: what is asked for; None for what the environment says, AUTO where it says nothing.

    Raises:
        BuildError: there is no such backend, or NATIVE is asked for and cannot be had.
    """
    text = wanted.value if isinstance(wanted, Backend) else wanted or os.environ.get(VARIABLE) or "auto"
    try:
        backend = Backend(text.lower())
    except ValueError as error:
        names = ", ".join(item.value for item in Backend)
        raise BuildError(f"backend {text!r} is not known; expected one of {names}") from error
    if backend is Backend.NUMPY:
        return backend
    reason = _obstacle()
    if reason is not None and backend is Backend.NATIVE:
        raise BuildError(f"the native backend cannot be had: {reason}")
    return Backend.NATIVE if reason is None else Backend.NUMPY


def _obstacle() -> str | None:
    """Return what keeps kernels from being compiled, None if nothing does."""
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed"
    from engine.compiler.emit.target import host_target  # noqa: PLC0415  # only now is llvmlite known to be there

    try:
        host_target()
    except (OSError, ValueError) as error:
        return str(error)
    return None
