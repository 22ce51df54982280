"""Inputs and outputs of a model by the names and shapes that clients of the protocol use.

Metadata shows the name of the operand; the name of an operator is accepted too if it has a single tensor.
"""

from collections.abc import Sequence

from engine import Port
from service.errors import ServiceError, did_you_mean
from service.v2.datatypes import is_complex

DYNAMIC = -1
"""A dimension that may have any extent."""


def find_port(ports: Sequence[Port], name: str, kind: str) -> int:
    """Return the index of the input or output with a name.

    Args:
        ports: the graph's inputs or outputs.
        name: the name that the client uses.
        kind: `input` or `output`, for the message.

    Raises:
        ServiceError: 400 `unknown_input`, `unknown_output`, or `ambiguous_name`.
    """
    for index, port in enumerate(ports):
        if port.operand == name:
            return index
    found = [index for index, port in enumerate(ports) if port.operator == name]
    if len(found) == 1:
        return found[0]
    known = [port.operand for port in ports]
    details = {"name": name[:80], "known": known}
    listing = ", ".join(repr(one) for one in known) or "none"
    if found:
        message = f"{kind} {name[:80]!r} means {len(found)} tensors; the names are {listing}"
        raise ServiceError(400, "ambiguous_name", message, details)
    message = f"the model has no {kind} {name[:80]!r}; the names are {listing}{did_you_mean(name, known)}"
    raise ServiceError(400, f"unknown_{kind}", message, details)


def wire_shape(port: Port, dynamic_batch: bool = False) -> list[int]:
    """Return the shape of an input or output, with -1 for each dynamic dimension.

    Args:
        port: the input or output; if its shape is not declared, the result has a single dynamic dimension.
        dynamic_batch: whether the first dimension may have any extent, even if the file fixes it.
    """
    if port.shape is None:
        return [DYNAMIC]
    shape = [DYNAMIC if dim is None else dim for dim in port.shape]
    if dynamic_batch and shape:
        shape[0] = DYNAMIC
    return [*shape, 2] if is_complex(port) else shape


def check_shape(port: Port, shape: Sequence[int], dynamic_batch: bool) -> None:
    """Check the shape of a request against the one that metadata shows.

    Raises:
        ServiceError: 400 `wrong_shape`.
    """
    if port.shape is None:
        return
    expected = wire_shape(port, dynamic_batch)
    if len(shape) == len(expected) and all(
        wanted in (DYNAMIC, given) for wanted, given in zip(expected, shape, strict=True)
    ):
        return
    message = f"input {port.operand!r} has shape {list(shape)}; expected {expected}"
    if DYNAMIC in expected:
        message += ", where -1 stands for any"
    raise ServiceError(
        400, "wrong_shape", message, {"name": port.operand, "shape": list(shape), "expected": expected}
    )
