"""One operator of a model in full: parameters, operands, and the values of its attributes."""

from math import prod
from typing import Any

import numpy as np

from engine import Array, RuntimeOperator, widen
from service.graph.modules import modules_of
from service.graph.view import describe_graph
from service.graph.wiring import wiring_of
from service.inspection.distribution import describe_distribution, thinned
from service.repository.loaded_model import LoadedModel

_MAX_FILTERS = 64
"""Maximum filters of an attribute that are shown as pictures."""
_LONGEST_SIDE = 64
"""Maximum rows, and most columns, of such a picture."""


def find_operator(model: LoadedModel, name: str) -> RuntimeOperator | None:
    """Return an operator of a model by its name; None where it has none of that name."""
    return next((operator for operator in model.graph.operators if operator.name == name), None)


def describe_operator(model: LoadedModel, operator: RuntimeOperator) -> dict[str, Any]:
    """Return the description of an operator; numbers that JSON cannot represent are None or text.

    It reads the whole attributes, which takes a while where they are large.
    """
    described = describe_graph(model.graph)
    node = next(node for node in described["nodes"] if node["name"] == operator.name)
    operands = {operand["name"]: operand for operand in described["operands"]}
    wiring = wiring_of(model.graph)
    modules = dict(zip(wiring.names, modules_of(wiring), strict=True))
    return {
        "model": model.name,
        "version": model.version,
        "name": operator.name,
        "type": operator.type,
        "module": modules[operator.name],
        "parameters": node["parameters"],
        "multiply_adds": node["multiply_adds"],
        "precision": node["precision"],
        "inputs": [operands[name] for name in node["inputs"]],
        "outputs": [operands[name] for name in node["outputs"]],
        "attributes": [_describe_attribute(operator, key) for key in operator.attrs],
    }


def _describe_attribute(operator: RuntimeOperator, key: str) -> dict[str, Any]:
    attribute = operator.attrs[key]
    head = {
        "name": key,
        "shape": list(attribute.shape),
        "dtype": attribute.dtype,
        "bytes": attribute.data.nbytes,
    }
    if attribute.dtype == "null":
        return head | {"elements": 0, "counted": 0, "histogram": None}
    stored: Array = attribute.array()
    is_of_pairs = attribute.dtype == "c32"  # of which no element may be left out before they are put together
    found = describe_distribution(widen(stored if is_of_pairs else thinned(stored), attribute.dtype))
    filters = None if is_of_pairs else _filters(stored, attribute.dtype)
    return head | {"elements": prod(attribute.shape), **found, "filters": filters}


def _filters(stored: Array, dtype: str) -> list[list[list[float | None]]] | None:
    """Return the planes of the first filters at their first channel, or of a matrix some rows and columns.

    Args:
        stored: a weight, (filters, channels, …, rows, columns) or (rows, columns).
        dtype: its type in the model.
    """
    if stored.ndim == 2:
        rows, columns = (-(-side // _LONGEST_SIDE) or 1 for side in stored.shape)
        planes = stored[None, ::rows, ::columns]
    else:
        planes = stored[:_MAX_FILTERS]
        while planes.ndim > 3 and planes.size:
            planes = planes[:, 0]
    if planes.ndim != 3 or not planes.size or not 1 < planes[0].size <= _LONGEST_SIDE**2:
        return None
    values = widen(planes, dtype)
    if values.dtype.kind == "c":
        return None
    return [
        [[float(x) if np.isfinite(x) else None for x in row] for row in plane]
        for plane in values.astype(np.float64)
    ]
