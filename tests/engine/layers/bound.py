"""Binds a layer to an operator of its type, with parameters as a file would give them."""

from typing import Any

import numpy as np

from engine.binding.bound_layer import BoundLayer
from engine.binding.registry import registry
from engine.dtypes import Array
from engine.pnnx import Operator
from engine.spec import TensorSpec


def bind(kind: str, *operands: str, outputs: int = 1, **params: Any) -> BoundLayer:
    """Bind a layer; `operands` name the arguments that operands are bound to, `params` are parameters."""
    layer = registry.find(kind)
    assert layer is not None, f"no layer for {kind}"
    names = [str(place) for place in range(len(operands))]
    operator = Operator(kind, "op", names, [f"out{place}" for place in range(outputs)], params)
    if not layer.variadic:
        operator.input_names = dict(zip(operands, names, strict=True))
    return BoundLayer(layer, operator)


def run(kind: str, *, outputs: int = 1, params: dict[str, Any] | None = None, **operands: Any) -> Any:
    """Run a layer on operands given by argument name; returns its output, or a tuple of several."""
    layer = bind(kind, *operands, outputs=outputs, **(params or {}))
    with np.errstate(all="ignore"):
        results = layer.forward(list(operands.values()))
    return results[0] if outputs == 1 else results


def infer(kind: str, *, outputs: int = 1, params: dict[str, Any] | None = None, **operands: Any) -> Any:
    """Work out what a layer gives for specs of operands given by argument name."""
    results = bind(kind, *operands, outputs=outputs, **(params or {})).infer(list(operands.values()))
    return results[0] if outputs == 1 else results


def spec(*shape: int, dtype: str = "f4") -> TensorSpec:
    """Make the spec of a tensor."""
    return TensorSpec(shape, np.dtype(dtype))


def counting(*shape: int, dtype: str = "f4") -> Array:
    """Make an array of 0, 1, 2, …"""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def longs(values: Any) -> Array:
    """Make an int64 array."""
    return np.array(values, np.int64)


def singles(values: Any) -> Array:
    """Make a float32 array."""
    return np.array(values, np.float32)
