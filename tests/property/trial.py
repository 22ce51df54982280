"""One operator on made-up operands: what it gives, and what no operand may make it do."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine import KuiperError, pnnx, registry
from engine.binding.bound_layer import BoundLayer
from engine.dtypes import Array
from engine.errors import LayerError
from engine.spec import Value, arrays_in, is_known, spec_of


def bind(
    type_name: str, count: int, params: Mapping[str, Any], attributes: Mapping[str, Array] | None = None
) -> BoundLayer:
    """Bind an operator with so many operands and one output to its layer."""
    layer = registry.find(type_name)
    assert layer is not None
    operator = pnnx.Operator(type_name, "op", [f"in_{i}" for i in range(count)], ["out"], dict(params))
    operator.attrs = {name: pnnx.Attribute.from_array(array) for name, array in (attributes or {}).items()}
    return BoundLayer(layer, operator)


def attempt(
    type_name: str,
    inputs: Sequence[Value],
    params: Mapping[str, Any],
    attributes: Mapping[str, Array] | None = None,
) -> Any:
    """Run an operator; returns what it gave, or None where the engine refused.

    Fails when anything but the engine's own errors comes out, when the layer's shape rule refuses what the layer runs
    on or foretells another result, or when an input was written to.
    """
    kept = [[array.copy() for array in arrays_in(value)] for value in inputs]
    with np.errstate(all="ignore"):
        try:
            bound = bind(type_name, len(inputs), params, attributes)
            (output,) = bound.forward(inputs)
        except KuiperError:
            return None
        try:
            (inferred,) = bound.infer([spec_of(value) for value in inputs])
        except LayerError as error:
            raise AssertionError(f"the shape rule refuses what the layer runs on: {error}") from error
    assert not is_known(inferred) or spec_of(output) == inferred
    for before, value in zip(kept, inputs, strict=True):
        for old, new in zip(before, arrays_in(value), strict=True):
            np.testing.assert_array_equal(old, new, "a layer wrote to its input")
    return output


def shapes(least: int = 0, most: int = 5, extent: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw shapes of so many axes; empty ones are among them."""
    return st.lists(st.integers(0, extent), min_size=least, max_size=most).map(tuple)


@st.composite
def arrays(
    draw: st.DrawFn,
    shape: st.SearchStrategy[tuple[int, ...]],
    dtypes: Sequence[str] = ("f4", "f4", "f4", "f8", "f2", "i8", "?", "c8", "u1"),
) -> Array:
    """Draw an array: mostly moderate numbers, some of them not finite or huge."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    array = rng.normal(0, draw(st.sampled_from((1, 1, 3, 1e6))), draw(shape))
    odd = draw(st.sampled_from((None, None, None, np.nan, np.inf, -np.inf, 1e30)))
    dtype = np.dtype(draw(st.sampled_from(tuple(dtypes))))
    if odd is not None and array.size and dtype.kind in "fc":
        array.flat[rng.integers(array.size)] = odd
    with np.errstate(all="ignore"):
        return (np.rint(array) if dtype.kind in "iu" else array).astype(dtype)


def mostly(valid: st.SearchStrategy[Any], odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw from `valid`, now and then from `odd`."""
    return st.integers(0, 7).flatmap(lambda number: odd if number == 7 else valid)


def ints(low: int = 1, high: int = 3, axes: int = 2) -> st.SearchStrategy[int | tuple[int, ...] | None]:
    """Draw what may stand where an int for each axis is wanted, or one for all of them."""
    one = st.integers(low, high)
    any_one = st.integers(-2, 5) | st.sampled_from((2**31, 10**12))
    odd = st.one_of(any_one, st.lists(any_one, min_size=1, max_size=4).map(tuple), st.none())
    return mostly(one | st.lists(one, min_size=axes, max_size=axes).map(tuple), odd)


def few(**params: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw some of the parameters."""
    return st.fixed_dictionaries({}, optional=params)
