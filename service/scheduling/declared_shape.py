"""Tells a client which shape a model declares, where the model does not run on another one that the client sent."""

from collections.abc import Mapping, Sequence

from engine import Array, InputError, LayerError, Port
from service.errors import ServiceError, engine_error


def name_declared_shape(
    error: InputError | LayerError, ports: Sequence[Port], inputs: Mapping[str, Array]
) -> Exception:
    """Return the error to answer a run that failed with.

    Models may run on other shapes than they declare, so only a run shows. What it shows is where inside the model the
    shape did not fit, which says little to those who sent it.

    Args:
        error: what the engine raised.
        ports: the graph's inputs.
        inputs: operand name -> array.

    Returns:
        An error that names the first input whose shape is not the declared one, and what failed; `error` itself where
        all inputs are as declared, or memory was short.
    """
    if isinstance(error.__cause__, MemoryError):
        return error
    for port in ports:
        array = inputs.get(port.operand)
        if array is None or port.shape is None or _fits(array.shape, port.shape):
            continue
        shape, plain = list(array.shape), engine_error(error)
        place = f"input {port.operator} has shape {shape}"
        message = f"{place}, on which the model does not run; it declares {port}: {error}"
        details = {"name": port.operator, "shape": shape, "expected": list(port.shape)}
        named = ServiceError(plain.status, plain.code, message, details)
        named.__cause__ = error
        return named
    return error


def _fits(shape: Sequence[int], declared: Sequence[int | None]) -> bool:
    return len(shape) == len(declared) and all(
        expected in (None, dim) for dim, expected in zip(shape, declared, strict=True)
    )
