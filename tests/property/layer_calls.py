"""Draws calls of layers, sensible or not: operands and parameters of the kinds that a layer's signature names."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.binding.arguments import Argument
from engine.binding.bound_layer import BoundLayer
from engine.binding.registry import registry
from engine.dtypes import TORCH_DTYPES, Array
from engine.errors import KuiperError
from engine.pnnx import Operator
from engine.spec import UNKNOWN, Spec, TensorSpec, spec_of

NUMBERS = {"b": (0, 1), "i": (-4, 4), "u": (0, 4), "f": (-3, 3), "c": (-3, 3)}
DTYPES = [np.dtype(name) for name in ("f4", "f4", "f8", "f2", "i8", "i8", "i4", "u1", "?", "c8")]
WORDS = (
    "inf",
    "-inf",
    "fro",
    "ortho",
    "forward",
    "reflect",
    "constant",
    "replicate",
    "circular",
    "window",
    "sum",
)


@st.composite
def tensors(draw: st.DrawFn) -> Array:
    """Draw an array of up to four small dimensions, some of them empty."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    low, high = NUMBERS[dtype.kind]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    drawn = rng.integers(low, high, shape, endpoint=True).astype(dtype)
    if dtype.kind == "f" and draw(st.booleans()):
        drawn = np.where(rng.random(shape) < 0.2, np.asarray(np.nan, dtype), drawn)
    return np.asarray(drawn)


small = st.integers(-5, 6)
lists = st.lists(small, max_size=4).map(tuple)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "a tensor": tensors(),
    "a bool": st.booleans(),
    "an int": small,
    "a float": st.floats(-4, 4, width=16) | st.sampled_from([np.inf, -np.inf, 0.0]),
    "a complex number": st.complex_numbers(max_magnitude=4),
    "a string": st.sampled_from(WORDS),
    "ints": lists | small,
    "floats": st.lists(st.floats(-4, 4, width=16), max_size=3).map(tuple),
    "strings": st.lists(st.sampled_from(["1", "@0", "@1", "-2", "@", "x"]), max_size=4).map(tuple),
    "indices": st.lists(st.none() | tensors(), max_size=3).map(tuple),
    "a torch dtype": st.sampled_from(sorted(TORCH_DTYPES)),
    "an expression": st.just("add(@0,1)"),
    "None": st.none(),
}


@dataclass
class Call:
    """A layer's operator and the values of its operands."""

    operator: Operator
    values: list[Any] = field(default_factory=list)


@st.composite
def calls(draw: st.DrawFn, kinds: list[str]) -> Call:
    """Draw a call of one of these PNNX types."""
    layer = registry.find(draw(st.sampled_from(kinds)))
    assert layer is not None
    call = Call(Operator(layer.type, "op", outputs=["out"]))
    if layer.variadic:
        for _ in range(draw(st.integers(0, 3))):
            _add_operand(call, None, draw(tensors() | small))
    for argument in layer.arguments:
        if argument.required or draw(st.booleans()):
            _add_argument(draw, call, argument)
    return call


def _add_argument(draw: st.DrawFn, call: Call, argument: Argument) -> None:
    fitting = st.one_of([KINDS[kind] for kind in argument.expected.split(" or ")])
    value = draw(fitting if draw(st.integers(0, 9)) else st.one_of(list(KINDS.values())))
    if _holds_tensor(value) or draw(st.integers(0, 4)) == 0:
        _add_operand(call, argument.name, value)
    else:
        call.operator.params[argument.name] = value


def _holds_tensor(value: Any) -> bool:
    items = value if isinstance(value, tuple) else (value,)
    return any(isinstance(item, np.ndarray) for item in items)


def _add_operand(call: Call, argument: str | None, value: Any) -> None:
    name = str(len(call.values))
    call.operator.inputs.append(name)
    if argument is not None:
        call.operator.input_names[argument] = name
    call.values.append(value)


def check_call(call: Call, *, data_matters: bool) -> None:
    """Run a call: only the engine's own errors may come, and what the shape rule says must hold.

    Args:
        call: the call.
        data_matters: whether the layer may refuse a call whose shapes and dtypes are in order.
    """
    layer = registry.find(call.operator.type)
    assert layer is not None
    try:
        bound = BoundLayer(layer, call.operator)
    except KuiperError:
        return
    expected = _inferred(bound, call)
    kept = [value.copy() if isinstance(value, np.ndarray) else value for value in call.values]
    try:
        with np.errstate(all="ignore"):
            output = bound.forward(call.values)[0]
    except KuiperError:
        assert data_matters or not isinstance(expected, TensorSpec), "the shape rule let a bad call pass"
        return
    if isinstance(expected, TensorSpec):
        assert spec_of(output) == expected
    for before, after in zip(kept, call.values, strict=True):
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(before, after)


def _inferred(bound: BoundLayer, call: Call) -> Spec:
    """Return what the shape rule says of the output; nothing if it refuses the call."""
    try:
        return bound.infer([spec_of(value) for value in call.values])[0]
    except KuiperError:
        return UNKNOWN


def types_of(*families: str) -> dict[str, list[str]]:
    """Layer family -> the types that its file registers."""
    return {
        family: [layer.type for layer in registry if layer.forward.__module__ == f"engine.layers.{family}"]
        for family in families
    }
