"""Layers of neural networks: no call makes them fail but with an engine error, and shape rules keep their word."""

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dtypes import Array
from engine.errors import KuiperError
from engine.spec import is_known, spec_of
from tests.property.layer_calls import calls, check_call, types_of
from tests.property.trial import arrays, bind, few, mostly, shapes

FAMILIES = types_of(
    "activation",
    "attention",
    "batch_norm",
    "distance",
    "dropout",
    "embedding",
    "instance_norm",
    "linear",
    "matrix",
    "normalization",
    "softmax",
)
DATA_MATTERS = {"F.embedding", "nn.Embedding"}
"""Layers that may refuse values, an index out of range, where shapes and dtypes are in order."""


@pytest.mark.parametrize("family", sorted(FAMILIES))
@given(data=st.data())
def test_any_call_runs_or_fails_cleanly(family: str, data: st.DataObject) -> None:
    call = data.draw(calls(FAMILIES[family]))
    check_call(call, data_matters=call.operator.type in DATA_MATTERS)


def attempt(
    type_name: str, inputs: list[Array], params: dict[str, Any], attributes: dict[str, Array] | None = None
) -> Any:
    """Run an operator; returns what it gave, or None where its shape rule or its binding refused.

    Fails when anything but an engine error comes out, or when a call that the shape rule lets pass gives another
    result than inferred.
    """
    try:
        bound = bind(type_name, len(inputs), params, attributes)
    except KuiperError:
        return None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        try:
            (inferred,) = bound.infer([spec_of(value) for value in inputs])
        except KuiperError:
            warnings.simplefilter("ignore")
            with suppress(KuiperError):
                bound.forward(inputs)
            return None
        if not is_known(inferred):
            with suppress(KuiperError):
                bound.forward(inputs)
            return None
        (output,) = bound.forward(inputs)
    assert spec_of(output) == inferred
    return output


@st.composite
def alike(draw: st.DrawFn, *each: st.SearchStrategy[tuple[int, ...]]) -> list[Array]:
    """Draw arrays of one dtype."""
    dtype = draw(st.sampled_from(("f4", "f4", "f8", "f2", "i8", "c8", "?")))
    return [draw(arrays(shape, (dtype,))) for shape in each]


FLOATS = ("f4", "f4", "f8", "f2")
sizes = st.integers(0, 4)


@given(
    st.sampled_from(("torch.matmul", "torch.mm", "torch.mv", "torch.bmm", "F.linear")),
    alike(shapes(0, 4, 3), shapes(0, 4, 3)),
)
def test_products(type_name: str, operands: list[Array]) -> None:
    attempt(type_name, operands, {})


@given(
    st.sampled_from(("torch.addmm", "torch.baddbmm")),
    arrays(shapes(0, 3, 3), ("f4", "i8", "f2")),
    st.tuples(sizes, sizes, sizes),
    few(beta=st.sampled_from((0, 1, 2, 0.5)), alpha=st.sampled_from((0, 1, 2, 0.5))),
)
def test_sums_of_products(
    type_name: str, x: Array, extents: tuple[int, int, int], params: dict[str, Any]
) -> None:
    batch = () if type_name == "torch.addmm" else (2,)
    rows, inner, columns = extents
    a, b = np.ones((*batch, rows, inner), x.dtype), np.ones((*batch, inner, columns), x.dtype)
    attempt(type_name, [x, a, b], params)


terms = st.text("ijkI.", max_size=4) | st.sampled_from(("ij", "jk", "...ij", "i...", "ii", "ab c", "i", ""))


@given(
    st.lists(terms, min_size=1, max_size=3),
    st.none() | terms | st.sampled_from(("->", "ik->j", "1")),
    st.lists(arrays(shapes(0, 4, 3), ("f4",)), min_size=1, max_size=3),
)
def test_einsum(inputs: list[str], output: str | None, operands: list[Array]) -> None:
    equation = ",".join(inputs) + ("" if output is None else f"->{output}")
    attempt("torch.einsum", operands, {"equation": equation})


@given(
    st.lists(st.sampled_from("ijkl"), min_size=1, max_size=3).map("".join),
    st.lists(st.sampled_from("ijkl"), min_size=1, max_size=3).map("".join),
    st.sets(st.sampled_from("ijkl")).map(sorted).map("".join),
)
def test_einsum_agrees_with_numpy(first: str, second: str, output: str) -> None:
    kept = "".join(label for label in output if label in first + second)
    extents = dict(zip("ijkl", (2, 3, 4, 5), strict=True))
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=[extents[label] for label in term]) for term in (first, second)]
    equation = f"{first},{second}->{kept}"
    given_back = attempt("torch.einsum", operands, {"equation": equation})
    np.testing.assert_allclose(given_back, np.einsum(equation, *operands), rtol=1e-10, atol=1e-12)


@given(
    st.sampled_from(
        ("nn.LayerNorm", "nn.RMSNorm", "nn.GroupNorm", "nn.BatchNorm1d", "nn.InstanceNorm2d", "nn.PReLU")
    ),
    arrays(shapes(0, 4, 4), FLOATS),
    arrays(shapes(1, 2, 4), FLOATS),
    few(normalized_shape=shapes(0, 2, 4), num_groups=st.integers(-1, 4), eps=st.just(1e-3)),
)
def test_norms_with_weights(type_name: str, x: Array, weight: Array, params: dict[str, Any]) -> None:
    names = ("weight", "running_mean", "running_var") if "Batch" in type_name else ("weight",)
    attempt(type_name, [x], params, dict.fromkeys(names, weight))


@given(
    alike(shapes(2, 4, 4), shapes(2, 4, 4)),
    arrays(shapes(0, 4, 4), ("f4", "?", "f8")),
    few(is_causal=st.booleans(), scale=st.just(0.3), enable_gqa=st.booleans()),
)
def test_attention(operands: list[Array], mask: Array, params: dict[str, Any]) -> None:
    query, key = operands
    attempt("F.scaled_dot_product_attention", [query, key, key], params)
    attempt("F.scaled_dot_product_attention", [query, query, query, mask], params)


@given(
    st.lists(
        arrays(
            mostly(st.sampled_from(((3, 2, 4), (5, 2, 4), (3, 5), (2, 5), (3, 4), (6, 3, 5))), shapes()),
            ("f4", "?"),
        ),
        min_size=1,
        max_size=5,
    ),
    few(batch_first=st.booleans(), add_zero_attn=st.booleans()),
    st.sampled_from((1, 2, 3, 0)),
    st.booleans(),
)
def test_multihead_attention(operands: list[Array], params: dict[str, Any], heads: int, packed: bool) -> None:
    names = ["in_proj_weight"] if packed else ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
    weights = {name: np.ones((12 if packed else 4, 4), np.float32) for name in names}
    weights["out_proj.weight"] = np.ones((4, 4), np.float32)
    attempt("nn.MultiheadAttention", operands, {"num_heads": heads, **params}, weights)


@given(
    st.sampled_from((("nn.RNN", 1), ("nn.GRU", 3), ("nn.LSTM", 4))),
    arrays(mostly(st.tuples(sizes, sizes, st.just(3)), shapes(0, 4, 4)), ("f4", "f4", "f8", "f2", "i8")),
    st.lists(arrays(mostly(st.tuples(st.just(1), sizes, st.just(2)), shapes()), ("f4",)), max_size=3),
    few(num_layers=st.sampled_from((1, 2, 0, 10**9)), batch_first=st.booleans(), bidirectional=st.booleans()),
)
def test_recurrent(kind: tuple[str, int], x: Array, states: list[Array], params: dict[str, Any]) -> None:
    type_name, gates = kind
    weights = {
        "weight_ih_l0": np.ones((gates * 2, 3), np.float32),
        "weight_hh_l0": np.ones((gates * 2, 2), np.float32),
    }
    weights |= {f"{name}_reverse": array for name, array in weights.items()}
    attempt(type_name, [x, *states], params, weights)


@given(st.data())
def test_broken_weights_of_recurrent_layers(data: st.DataObject) -> None:
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "weight_hr_l0", "weight_ih_l1")
    chosen = data.draw(st.sets(st.sampled_from(names)))
    weights = {name: data.draw(arrays(shapes(0, 3, 4), ("f4", "i8"))) for name in sorted(chosen)}
    attempt("nn.LSTM", [np.ones((2, 1, 3), np.float32)], {"num_layers": 1}, weights)


@given(arrays(shapes(0, 4, 5), ("f4", "f8")), st.sampled_from(sorted(FAMILIES["activation"])))
def test_activations_do_not_care_how_an_array_lies(x: Array, type_name: str) -> None:
    """A transposed view gives what its contiguous copy gives, in shape and value."""
    if type_name in ("nn.PReLU", "F.prelu", "nn.GLU", "F.glu", "nn.Threshold", "F.threshold"):
        return
    view = x.T
    given_back = attempt(type_name, [view], {})
    expected = attempt(type_name, [np.ascontiguousarray(view).reshape(view.shape)], {})
    np.testing.assert_allclose(given_back, expected, rtol=1e-6, atol=1e-7)
