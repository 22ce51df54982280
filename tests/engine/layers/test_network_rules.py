"""What the shape rules of network layers refuse, how they word it, and what they count."""

from typing import Any

import numpy as np
import pytest

from engine import LayerError
from engine.binding.registry import registry
from engine.pnnx import Attribute, Operator
from engine.spec import TensorSpec
from tests.cases import check_each
from tests.engine.layers.bound import bind, infer, spec

X = spec(2, 3, 4)
WHOLE = spec(2, 3, dtype="i8")

Refusal = tuple[str, dict[str, Any], dict[str, Any], str]

REFUSED: list[Refusal] = [
    (
        "nn.SiLU",
        {"input": WHOLE},
        {},
        "operand '0' (input, (2,3)i64): dtype i64; expected a tensor of float or",
    ),
    ("nn.ReLU", {"input": spec(2, dtype="?")}, {}, "dtype bool"),
    ("F.hardtanh", {"input": X}, {"min_val": 2, "max_val": 1}, "'min_val': 2 is above max_val, 1"),
    (
        "F.threshold",
        {"input": WHOLE},
        {"threshold": 0, "value": 1e30},
        "'value': is 1e+30; expected a number from",
    ),
    (
        "F.threshold",
        {"input": X},
        {"threshold": 1j, "value": 0},
        "'threshold': is 1j; expected a real number",
    ),
    ("F.celu", {"input": X}, {"alpha": 0}, "'alpha': is 0"),
    ("F.softshrink", {"input": X}, {"lambd": -1}, "'lambd': is -1.0; expected 0 or more"),
    ("F.gelu", {"input": X}, {"approximate": "erf"}, "'approximate': is 'erf'; expected 'none' or 'tanh'"),
    ("F.glu", {"input": X}, {"dim": 1}, "size 3 in dimension 1; expected an even size to halve"),
    ("F.glu", {"input": spec()}, {}, "0 dimensions; expected at least 1 dimensions"),
    (
        "F.prelu",
        {"input": X, "weight": spec(2)},
        {},
        "operand '1' (weight, (2)f32): shape (2,); expected one slope, or 3",
    ),
    ("F.softmax", {"input": X}, {"dim": 3}, "'dim': got 3; expected a dimension from -3 to 2"),
    ("F.softmax", {"input": WHOLE}, {"dim": 0}, "dtype i64"),
    ("nn.Softmax2d", {"input": spec(2, 3)}, {}, "2 dimensions; expected 3 or 4 dimensions"),
    (
        "F.linear",
        {"input": X, "weight": spec(5, 3)},
        {},
        "operand '0' (input, (2,3,4)f32): size 4 in dimension 2; expected 3",
    ),
    (
        "F.linear",
        {"input": X, "weight": spec(5, 4, dtype="f8")},
        {},
        "(weight, (5,4)f64): dtype f64; expected f32 as",
    ),
    (
        "F.linear",
        {"input": X, "weight": spec(5, 4), "bias": spec(3)},
        {},
        "(bias, (3)f32): shape (3,); expected (5,)",
    ),
    ("F.linear", {"input": spec(), "weight": spec(5, 4)}, {}, "0 dimensions"),
    (
        "torch.matmul",
        {"input": X, "other": spec(3, 2)},
        {},
        "(other, (3,2)f32): shapes (2, 3, 4) and (3, 2) do not",
    ),
    ("torch.matmul", {"input": X, "other": spec()}, {}, "without dimensions cannot be multiplied"),
    ("torch.matmul", {"input": X, "other": spec(3, 4, 2)}, {}, "(other, (3,4,2)f32): shape mismatch"),
    (
        "torch.mm",
        {"input": X, "mat2": spec(4, 2)},
        {},
        "(input, (2,3,4)f32): 3 dimensions; expected 2 dimensions",
    ),
    ("torch.mv", {"input": spec(3, 4), "vec": spec(4, 1)}, {}, "(vec, (4,1)f32): 2 dimensions; expected 1"),
    (
        "torch.bmm",
        {"input": X, "mat2": spec(3, 4, 2)},
        {},
        "(mat2, (3,4,2)f32): size 3 in dimension 0; expected 2",
    ),
    (
        "torch.addmm",
        {"input": spec(5), "mat1": spec(2, 3), "mat2": spec(3, 4)},
        {},
        "(input, (5)f32): shape (5,); expected one that broadcasts to (2, 4)",
    ),
    (
        "torch.addmm",
        {"input": spec(4, dtype="i8"), "mat1": spec(2, 3, dtype="i8"), "mat2": spec(3, 4, dtype="i8")},
        {"alpha": 0.5},
        "'alpha': is 0.5; expected an int",
    ),
    (
        "torch.baddbmm",
        {"input": spec(4), "batch1": X, "batch2": spec(2, 4, 4)},
        {"beta": 2j},
        "'beta': is 2j; expected a real number",
    ),
    (
        "F.embedding",
        {"input": X, "weight": spec(5, 3)},
        {},
        "dtype f32; expected indices of dtype i64 or i32",
    ),
    ("F.embedding", {"input": WHOLE, "weight": spec(5)}, {}, "(weight, (5)f32): 1 dimensions; expected 2"),
    ("F.batch_norm", {"input": spec(3)}, {}, "1 dimensions; expected at least 2 dimensions"),
    (
        "F.batch_norm",
        {"input": X, "running_mean": spec(2), "running_var": spec(3)},
        {},
        "(running_mean, (2)f32): shape (2,)",
    ),
    ("F.batch_norm", {"input": spec(1, 3)}, {}, "more than one element per channel"),
    ("nn.BatchNorm2d", {"input": X}, {}, "3 dimensions; expected 4 dimensions"),
    ("F.layer_norm", {"input": X}, {"normalized_shape": (3,)}, "its last dimensions to be (3,)"),
    ("F.layer_norm", {"input": X}, {"normalized_shape": ()}, "'normalized_shape': is empty"),
    (
        "F.layer_norm",
        {"input": X, "weight": spec(3)},
        {"normalized_shape": (4,)},
        "(weight, (3)f32): shape (3,)",
    ),
    ("F.rms_norm", {"input": WHOLE}, {"normalized_shape": (3,)}, "dtype i64"),
    (
        "F.group_norm",
        {"input": X},
        {"num_groups": 2},
        "'num_groups': is 2; expected a divisor of the input's 3 channels",
    ),
    ("F.group_norm", {"input": spec(1, 3)}, {"num_groups": 3}, "more than one element per group"),
    ("F.instance_norm", {"input": spec(2, 3)}, {}, "2 dimensions; expected at least 3"),
    ("nn.InstanceNorm1d", {"input": spec(2, 3, 1)}, {}, "more than one element per channel"),
    ("nn.InstanceNorm2d", {"input": spec(2, 3)}, {}, "2 dimensions; expected 3 or 4"),
    ("F.local_response_norm", {"input": spec(2, 3)}, {"size": 2}, "at least 3 dimensions"),
    ("F.local_response_norm", {"input": X}, {"size": 0}, "'size': is 0; expected 1 or more"),
    ("F.normalize", {"input": X}, {"dim": 3}, "'dim': got 3"),
    ("F.normalize", {"input": spec(2, 0)}, {"p": float("inf")}, "'p': is inf"),
    (
        "F.pairwise_distance",
        {"x1": X, "x2": spec(3)},
        {},
        "(x2, (3)f32): shapes (2, 3, 4) and (3,) do not broadcast",
    ),
    ("F.pairwise_distance", {"x1": spec(2, 0), "x2": spec(2, 0)}, {"p": float("inf")}, "'p': is inf"),
    (
        "F.scaled_dot_product_attention",
        {"query": X, "key": spec(2, 5, 3), "value": X},
        {},
        "(key, (2,5,3)f32): size 3 in dimension 2; expected 4",
    ),
    (
        "F.scaled_dot_product_attention",
        {"query": X, "key": X, "value": spec(2, 5, 4)},
        {},
        "(value, (2,5,4)f32): size 5 in dimension 1; expected 3",
    ),
    (
        "F.scaled_dot_product_attention",
        {"query": X, "key": X, "value": X, "attn_mask": spec(3, 4)},
        {},
        "(attn_mask, (3,4)f32): shape (3, 4); expected one that broadcasts to (2, 3, 3)",
    ),
    (
        "F.scaled_dot_product_attention",
        {"query": X, "key": spec(2, 3, 4, dtype="f8"), "value": X},
        {},
        "(key, (2,3,4)f64): dtype f64; expected f32 as the query has",
    ),
    (
        "F.scaled_dot_product_attention",
        {"query": spec(4, 2, 3), "key": spec(3, 2, 3), "value": spec(3, 2, 3)},
        {"enable_gqa": True},
        "(key, (3,2,3)f32): 3 heads; expected a divisor of the query's 4 heads",
    ),
]


def test_refused() -> None:
    def check(case: Refusal) -> None:
        kind, operands, params, message = case
        with pytest.raises(LayerError) as caught:
            infer(kind, params=params, **operands)
        assert message in str(caught.value)
        assert str(caught.value).startswith(f"{kind} op")

    check_each(REFUSED, check)


@pytest.mark.parametrize(
    ("equation", "operands", "message"),
    [
        ("ij,jk", [X], "'ij,jk' takes 2 operands, not 1"),
        ("ijkl", [X], "'ijkl' does not fit 3 dimensions"),
        ("i1k", [X], "'i1k' has something other than letters and one ellipsis"),
        ("ijk->iijk", [X], "'iijk' must name labels of the operands, each once"),
        ("ijk->l", [X], "'l' must name labels of the operands"),
        ("iij", [spec(2, 3, 4)], "a repeated label has sizes 2 and 3 in one operand"),
        ("ij,jk", [spec(2, 3), spec(4, 5)], "a label has sizes 3 and 4"),
        ("ij,jk", [spec(2, 3), spec(3, 5, dtype="f8")], "dtype f64; expected f32 as the input has"),
    ],
)
def test_einsum_refuses(equation: str, operands: list[TensorSpec], message: str) -> None:
    names = [str(place) for place in range(len(operands))]
    with pytest.raises(LayerError) as caught:
        bind("torch.einsum", *names, equation=equation).infer(operands)
    assert message in str(caught.value)


def test_an_index_that_is_no_row_is_named() -> None:
    layer = bind("F.embedding", "input", "weight")
    weight = np.zeros((4, 2), np.float32)
    for index in (-1, 4):
        with pytest.raises(
            LayerError, match=rf"operand '0' \(input, \(2\)i64\): index {index}; expected 0 to 3"
        ):
            layer.forward([np.array([2, index]), weight])


def attention(*operands: TensorSpec, outputs: int = 1, **params: Any) -> Any:
    attributes = {
        "in_proj_weight": np.zeros((12, 4), np.float32),
        "out_proj.weight": np.zeros((4, 4), np.float32),
    }
    return bind_with(
        "nn.MultiheadAttention", attributes, len(operands), outputs, {"num_heads": 2} | params
    ).infer(operands)


def bind_with(kind: str, attributes: dict[str, Any], count: int, outputs: int, params: dict[str, Any]) -> Any:
    from engine.binding.bound_layer import BoundLayer

    layer = registry.find(kind)
    assert layer is not None
    names = [str(place) for place in range(count)]
    operator = Operator(kind, "op", names, [f"out{place}" for place in range(outputs)], params)
    operator.attrs = {name: Attribute.from_array(array) for name, array in attributes.items()}
    return BoundLayer(layer, operator)


@pytest.mark.parametrize(
    ("operands", "params", "message"),
    [
        ([spec(5, 2, 3)], {}, "size 3 in dimension 2; expected 4"),
        ([spec(5, 2, 4), spec(6, 3, 4)], {}, "expected"),
        ([spec(5, 4, dtype="?")], {}, "no operand is of a float dtype"),
        ([spec(5, 2, 4)] * 4, {}, "4 sequences"),
        ([spec(5, 2, 4), spec(5, 2, 4), spec(5, 2, 4), spec(9, 9)], {}, "key_padding_mask"),
        ([spec(5, 2, 4)], {"num_heads": 3}, "'num_heads': is 3; expected a divisor of 4 features"),
    ],
)
def test_multihead_attention_refuses(
    operands: list[TensorSpec], params: dict[str, Any], message: str
) -> None:
    with pytest.raises(LayerError) as caught:
        attention(*operands, **params)
    assert message in str(caught.value)


def test_multihead_attention_names_the_weight_that_is_missing() -> None:
    layer = bind_with("nn.MultiheadAttention", {}, 1, 1, {"num_heads": 2})
    with pytest.raises(LayerError, match="'in_proj_weight': is missing"):
        layer.infer([spec(5, 2, 4)])


RECURRENT = {"weight_ih_l0": np.zeros((8, 3), np.float32), "weight_hh_l0": np.zeros((8, 2), np.float32)}


@pytest.mark.parametrize(
    ("operands", "params", "message"),
    [
        ([spec(5, 2, 4)], {}, "(input, (5,2,4)f32): size 4 in dimension 2; expected 3"),
        ([spec(5)], {}, "1 dimensions; expected 2 or 3 dimensions"),
        ([spec(0, 2, 3)], {}, "expected a sequence of at least one step"),
        ([spec(5, 2, 3, dtype="f8")], {}, "attribute 'weight_ih_l0': dtype f32; expected f64"),
        (
            [spec(5, 2, 3), spec(1, 3, 2)],
            {},
            "operand '1' (hx, (1,3,2)f32): shape (1, 3, 2); expected shape (1, 2, 2)",
        ),
        ([spec(5, 2, 3)], {"num_layers": 2}, "'weight_ih_l1': is missing; expected shape (8, 2)"),
        ([spec(5, 2, 3)], {"bidirectional": True}, "'weight_ih_l0_reverse': is missing"),
        ([spec(5, 2, 3)], {"num_layers": 0}, "'num_layers': is 0; expected 1 or more"),
    ],
)
def test_recurrent_layers_refuse(operands: list[TensorSpec], params: dict[str, Any], message: str) -> None:
    layer = bind_with("nn.LSTM", RECURRENT, len(operands), 1, params)
    with pytest.raises(LayerError) as caught:
        layer.infer(operands)
    assert message in str(caught.value)


def test_an_rnn_refuses_another_nonlinearity() -> None:
    layer = bind_with("nn.RNN", RECURRENT, 1, 1, {"nonlinearity": "gelu"})
    with pytest.raises(LayerError, match="'nonlinearity': is 'gelu'; expected 'tanh' or 'relu'"):
        layer.infer([spec(5, 2, 3)])


@pytest.mark.parametrize(
    ("kind", "operands", "params", "count"),
    [
        ("F.linear", {"input": spec(2, 3, 4), "weight": spec(5, 4)}, {}, 2 * 3 * 5 * 4),
        ("torch.matmul", {"input": spec(2, 3, 4), "other": spec(4, 5)}, {}, 2 * 3 * 4 * 5),
        ("torch.matmul", {"input": spec(4), "other": spec(4)}, {}, 4),
        ("torch.mv", {"input": spec(3, 4), "vec": spec(4)}, {}, 12),
        ("torch.addmm", {"input": spec(5), "mat1": spec(3, 4), "mat2": spec(4, 5)}, {}, 60),
        ("torch.baddbmm", {"input": spec(5), "batch1": spec(2, 3, 4), "batch2": spec(2, 4, 5)}, {}, 120),
        (
            "F.scaled_dot_product_attention",
            {"query": spec(2, 3, 4), "key": spec(2, 5, 4), "value": spec(2, 5, 6)},
            {},
            2 * 3 * 5 * (4 + 6),
        ),
    ],
)
def test_multiply_adds(kind: str, operands: dict[str, Any], params: dict[str, Any], count: int) -> None:
    layer = bind(kind, *operands, **params)
    specs = list(operands.values())
    assert layer.multiply_adds(specs, layer.infer(specs)) == count


def test_multiply_adds_of_einsum_are_those_of_its_pairs() -> None:
    layer = bind("torch.einsum", "0", "1", "2", equation="ij,jk,kl->il")
    specs = [spec(2, 3), spec(3, 4), spec(4, 5)]
    assert layer.multiply_adds(specs, layer.infer(specs)) == 2 * 3 * 4 + 2 * 4 * 5


def test_multiply_adds_of_attention_and_recurrent_layers() -> None:
    weights = {
        "in_proj_weight": np.zeros((12, 4), np.float32),
        "out_proj.weight": np.zeros((4, 4), np.float32),
    }
    layer = bind_with("nn.MultiheadAttention", weights, 2, 1, {"num_heads": 2})
    specs = [spec(5, 2, 4), spec(7, 2, 4)]
    projections = 5 * 4 * 4 * 2 + 7 * 4 * 4 * 2
    assert layer.multiply_adds(specs, layer.infer(specs)) == 2 * (projections + 2 * 5 * 7 * 4)
    recurrent = bind_with("nn.LSTM", RECURRENT, 1, 1, {})
    assert recurrent.multiply_adds([spec(5, 2, 3)], recurrent.infer([spec(5, 2, 3)])) == 5 * 2 * (
        8 * 3 + 8 * 2
    )
