"""Shape rules of layers that only view their inputs, or one element: they run the layer on arrays without memory."""

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.binding.registry import LayerFunction, layer
from engine.dtypes import Array
from engine.spec import TensorSpec, spec_of

_ELEMENT = bytes(16)
"""The memory of one element of any dtype."""


def placeholder_array(spec: TensorSpec) -> Array:
    """Return a read-only array of a spec's shape and dtype that takes no memory: all its elements are the same."""
    return np.ndarray(spec.shape, spec.dtype, _ELEMENT, strides=(0,) * spec.rank)


def _to_array(value: Any) -> Any:
    if isinstance(value, TensorSpec):
        return placeholder_array(value)
    return tuple(map(_to_array, value)) if isinstance(value, tuple | list) else value


def _to_spec(value: Any) -> Any:
    return list(map(spec_of, value)) if isinstance(value, list) else spec_of(value)


def by_views(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the shape rule of a layer that returns views of its inputs."""

    def infer(*operands: Any, **arguments: Any) -> Any:
        named = {name: _to_array(value) for name, value in arguments.items()}
        return _to_spec(forward(*map(_to_array, operands), **named))

    return infer


def view_layer(*type_names: str) -> Callable[[LayerFunction], LayerFunction]:
    """Register a layer that only looks at its inputs in another way; its shape rule is itself on placeholders."""

    def register(function: LayerFunction) -> LayerFunction:
        return layer(*type_names, infer=by_views(function))(function)

    return register
