"""The last line of defence: what an operator of a file makes the engine stumble over becomes an error of the engine.

Layers, shape rules and the compiler validate their arguments and describe what is wrong. An unforeseen error must not
reach a caller as a bare `IndexError` that names no operator.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.errors import ArgumentError, KuiperError, describe_problem

RUN_FAULTS = (
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)
"""Errors of a layer, or of numpy in it, on invalid values; anything else is a bug in the layer."""
BUILD_FAULTS = (*RUN_FAULTS, RuntimeError)
"""Errors of a layer on invalid parameters, including RecursionError."""


@contextmanager
def at_operator(type: str, name: str, doing: str, error: Callable[[str], KuiperError]) -> Iterator[None]:
    """Raise an error of the engine that names an operator for any other that is raised inside.

    Args:
        type: the operator's PNNX type.
        name: its name in the file.
        doing: the failed activity, e.g. `cannot be planned`.
        error: makes the error of its message; what was raised is its cause.

    Raises:
        KuiperError: one of `error`, or the engine's own as it was raised; an `ArgumentError`, which names no operator,
            is reworded.
        MemoryError: there was no memory, which is not the operator's fault.
    """
    place = f"{type} {name}"
    try:
        yield
    except ArgumentError as cause:
        raise error(
            describe_problem(f"{place}, {cause.argument!r}", cause.problem, cause.expected)
        ) from cause
    except (KuiperError, MemoryError):
        raise
    except Exception as cause:
        raise error(describe_problem(place, f"{doing}: {cause.__class__.__name__}: {cause}")) from cause
