"""Finds the output of a graph that a task reads."""

from collections.abc import Sequence

from engine import Port
from service.config.model_config import FILE_NAME, ModelConfigError


def choose_output(outputs: Sequence[Port], name: str | None, key: str) -> int:
    """Return which output has an operator or operand name; the first where no name is given.

    Args:
        outputs: the graph's outputs.
        name: the name.
        key: dotted name of the key of `model.toml` that gives it.

    Raises:
        ModelConfigError: there is none, or it holds complex numbers.
    """
    names = [(port.operand, port.operator) for port in outputs]
    found = [place for place, pair in enumerate(names) if name is None or name in pair]
    if not found:
        known = ", ".join(port.operand for port in outputs) or "an output"
        problem = "the graph has no output" if name is None else f"the graph has no output {name!r}"
        raise ModelConfigError(FILE_NAME, key, problem, known)
    port = outputs[found[0]]
    if port.dtype is not None and port.dtype[0] == "c":
        raise ModelConfigError(FILE_NAME, key, f"{port} is complex", "real numbers")
    return found[0]
