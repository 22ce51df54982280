"""Matches the arrays of a request with the inputs of a graph, by name or by position."""

import re
from collections.abc import Iterable, Sequence

from engine import PNNX_COMPUTE, Array, Port
from service.codec.conversion import convert
from service.errors import ServiceError, did_you_mean

_NUMBERED = re.compile(r"(\D*?)_?([0-9]{1,4})")


def find_port(ports: Sequence[Port], name: str | None) -> Port:
    """Return the input that has an operator or operand name, or the only input if no name is given.

    Raises:
        ServiceError: 422 `unknown_input`, or `missing_input` where a name is needed.
    """
    if name is None:
        return only_port(ports, "an input without a name")
    for port in ports:
        if name in (port.operand, port.operator):
            return port
    hint = did_you_mean(name, known_names(ports))
    message = f"the model has no input {name[:80]!r}; it takes {listing(ports)}{hint}"
    raise ServiceError(422, "unknown_input", message, {"name": name[:80], "inputs": _names(ports)})


def only_port(ports: Sequence[Port], what: str) -> Port:
    """Return the only input of a graph.

    Raises:
        ServiceError: 422 `missing_input` where there are several.
    """
    if len(ports) != 1:
        message = f"{what} is not enough: the model takes {len(ports)} inputs, {listing(ports)}"
        raise ServiceError(422, "missing_input", message, {"inputs": _names(ports)})
    return ports[0]


def check_duplicates(given: Iterable[Port]) -> None:
    """Check that no input is given twice, before the data of any is looked at.

    Raises:
        ServiceError: 422 `duplicate_input`.
    """
    seen: set[str] = set()
    for port in given:
        if port.operand in seen:
            message = f"input {port.operator} is given twice"
            raise ServiceError(422, "duplicate_input", message, {"name": port.operator})
        seen.add(port.operand)


def bind(ports: Sequence[Port], pairs: Iterable[tuple[Port, Array]]) -> dict[str, Array]:
    """Check that every input is given exactly once.

    Returns:
        Operand name -> array, in the order of the graph's inputs.

    Raises:
        ServiceError: 422 `duplicate_input` or `missing_input`.
    """
    listed = list(pairs)
    check_duplicates(port for port, _ in listed)
    given = {port.operand: array for port, array in listed}
    missing = [port.operator for port in ports if port.operand not in given]
    if missing:
        message = f"input {', '.join(missing)} is missing; the model takes {listing(ports)}"
        raise ServiceError(422, "missing_input", message, {"missing": missing, "inputs": _names(ports)})
    return {port.operand: given[port.operand] for port in ports}


def fit(port: Port, array: Array) -> Array:
    """Check an array's rank against an input, and convert the array to the input's dtype.

    Raises:
        ServiceError: 422 `wrong_rank`, `wrong_dtype` or `out_of_range`.
    """
    place = f"input {port.operator}"
    if port.shape is not None and array.ndim != len(port.shape):
        message = f"{place} has shape {array.shape}, {array.ndim} dimensions; expected {len(port.shape)}, like {port}"
        details = {"name": port.operator, "shape": list(array.shape), "expected": list(port.shape)}
        raise ServiceError(422, "wrong_rank", message, details)
    if port.dtype is None or array.dtype == PNNX_COMPUTE[port.dtype]:
        return array
    return convert(array, PNNX_COMPUTE[port.dtype], place)


def pair_up(ports: Sequence[Port], arrays: dict[str, Array]) -> list[tuple[Port, Array]]:
    """Pair arrays with inputs by name, or by number if all names are like `arr_0`, `arr_1`.

    Raises:
        ServiceError: 422 `unknown_input`.
    """
    known = known_names(ports)
    matches = [_NUMBERED.fullmatch(name) for name in arrays]
    numbers = [int(match[2]) for match in matches if match]
    prefixes = {match[1] for match in matches if match}
    in_order = (
        len(prefixes) == 1 and sorted(numbers) == list(range(len(arrays))) and len(arrays) == len(ports)
    )
    if in_order and not known.issuperset(arrays):
        return [(ports[number], array) for number, array in zip(numbers, arrays.values(), strict=True)]
    return [(find_port(ports, name), array) for name, array in arrays.items()]


def known_names(ports: Sequence[Port]) -> set[str]:
    """Return the names by which requests may refer to a graph's inputs."""
    return {name for port in ports for name in (port.operand, port.operator)}


def listing(ports: Sequence[Port]) -> str:
    """List a graph's inputs for an error message."""
    return ", ".join(f"{port.operator} ({port})" for port in ports) or "none"


def _names(ports: Sequence[Port]) -> list[str]:
    return [port.operator for port in ports]
