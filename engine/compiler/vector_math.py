"""Elementary functions as vector polynomials, and the activations made of them, on vectors and scalars alike."""

from collections.abc import Callable

from engine.compiler.emitter import Emitter, Value


def relu(e: Emitter, x: Value) -> Value:
    """max(x, 0); NaN stays."""
    return e.fmax(e.like(x, 0.0), x)


FUNCTIONS: dict[str, Callable[..., Value]] = {"relu": relu}
