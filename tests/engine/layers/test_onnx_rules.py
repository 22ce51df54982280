"""What the shape rules of the operators of ONNX, and of PyTorch's fast path, refuse, and how they word it."""

from typing import Any

import pytest

from engine import LayerError
from engine.binding.registry import registry
from engine.spec import UNKNOWN
from tests.engine.layers.bound import bind, infer, longs, run, singles, spec

X, W, R, B = spec(5, 2, 4), spec(1, 12, 4), spec(1, 12, 3), spec(1, 24)
STATE = spec(1, 2, 3)


def lstm(*operands: Any, **params: Any) -> Any:
    names = [str(place) for place in range(len(operands))]
    return bind("LSTM", *names, outputs=3, hidden_size=3, **params).infer(list(operands))


def test_an_lstm_takes_what_is_there_by_its_rank() -> None:
    wanted = (spec(5, 1, 2, 3), STATE, STATE)
    for rest in ([], [B], [B, STATE, STATE], [STATE, STATE]):
        assert lstm(X, W, R, *rest) == wanted


@pytest.mark.parametrize(
    ("operands", "params", "message"),
    [
        ((X, W), {}, "got 2 operands; expected X, W and R"),
        ((X, spec(1, 9, 4), R), {}, "shape (1, 9, 4); expected shape (1, 12, 4)"),
        ((X, W, R, spec(1, 12)), {}, "shape (1, 12); expected shape (1, 24)"),
        ((X, W, R, B, STATE), {}, "got 1 initial states; expected none, or 2"),
        ((X, W, R, spec(2, dtype="i4")), {}, "got 1 dimensions; expected a bias or an initial state"),
        ((spec(0, 2, 4), W, R), {}, "expected a sequence of at least one step"),
        ((X, W, R), {"direction": "sideways"}, "'direction': got 'sideways'"),
        ((X, W, R), {"layout": 1}, "'layout': got 1; expected 0"),
        ((X, W, R), {"clip": 3.0}, "'clip': got 3.0; expected no limit"),
        ((X, W, R), {"activations": ("Sigmoid", "Relu", "Tanh")}, "'activations': got"),
    ],
)
def test_an_lstm_refuses(operands: tuple[Any, ...], params: dict[str, Any], message: str) -> None:
    with pytest.raises(LayerError) as refused:
        lstm(*operands, **params)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "operands", "params", "message"),
    [
        ("TopK", {"input": X}, {"k": 6, "axis": 0}, "'k': got 6; expected at most the size of dimension 0"),
        ("Trilu", {"input": spec(4)}, {}, "got 1 dimensions; expected at least 2"),
        ("ArgMax", {"input": spec(0, 3)}, {}, "expected something to choose from"),
        ("PRelu", {"input": spec(3, 4), "slope": spec(3)}, {}, "do not broadcast"),
        ("DepthToSpace", {"input": spec(1, 6, 2, 2)}, {"blocksize": 2}, "expected blocks that divide them"),
        ("Pad", {"input": spec(3, 4)}, {"pads": (1, 1)}, "expected 4 constant margins"),
        ("Pad", {"input": spec(3, 4)}, {"pads": (1, 1, 1, 1), "mode": "wrap"}, "in mode 'wrap'"),
        ("Expand", {"input": spec(3, 4)}, {"shape": (2, 3)}, "do not broadcast"),
        ("Gather", {"input": spec(), "indices": spec(2, dtype="i8")}, {}, "expected at least 1"),
        ("Gather", {"input": spec(3), "indices": spec(2)}, {}, "expected int64 or int32"),
        ("GatherND", {"input": spec(3), "indices": spec(4, 2, dtype="i8")}, {}, "expected at most 1 in all"),
        (
            "GatherND",
            {"input": spec(3, 2), "indices": spec(2, 1, dtype="i8")},
            {"batch_dims": 1},
            "to begin with",
        ),
    ],
)
def test_refuses(kind: str, operands: dict[str, Any], params: dict[str, Any], message: str) -> None:
    with pytest.raises(LayerError) as refused:
        infer(kind, params=params, **operands)
    assert message in str(refused.value)


def test_indices_are_within_the_tensor() -> None:
    rows = singles([[1, 2], [3, 4], [5, 6]])
    assert run("Gather", input=rows, indices=longs([-1, 0])).tolist() == [[5, 6], [1, 2]]
    assert run("GatherND", input=rows, indices=longs([[-1, 0], [1, 1]])).tolist() == [5, 4]
    for kind, indices in (("Gather", [3]), ("Gather", [-4]), ("GatherND", [[0, 2]])):
        with pytest.raises(LayerError, match="indices.*expected -"):
            run(kind, input=rows, indices=longs(indices))


def test_shapes_in_tensors_are_known_in_the_run() -> None:
    assert infer("Expand", input=spec(3, 1), shape=spec(2, dtype="i8")) is UNKNOWN
    assert run("Expand", input=singles([[1], [2]]), shape=longs([2, 3])).tolist() == [[1] * 3, [2] * 3]


ENCODER: dict[str, Any] = {
    "src": spec(2, 5, 8),
    "qkv_weight": spec(24, 8),
    "qkv_bias": spec(24),
    "proj_weight": spec(8, 8),
    "proj_bias": spec(8),
    "norm_weight_1": spec(8),
    "norm_bias_1": spec(8),
    "norm_weight_2": spec(8),
    "norm_bias_2": spec(8),
    "ffn_weight_1": spec(16, 8),
    "ffn_bias_1": spec(16),
    "ffn_weight_2": spec(8, 16),
    "ffn_bias_2": spec(8),
}
NUMBERS = {"embed_dim": 8, "num_heads": 2, "use_gelu": False, "norm_first": False, "eps": 1e-5}


@pytest.mark.parametrize(
    ("operands", "params", "message"),
    [
        ({}, {"num_heads": 3}, "'num_heads': is 3; expected a divisor of 8 features"),
        ({}, {"embed_dim": 4}, "'embed_dim': is 4; expected 8"),
        ({"src": spec(5, 8)}, {}, "2 dimensions; expected 3"),
        ({"ffn_weight_2": spec(16, 8)}, {}, "shape (16, 8); expected shape (8, 16)"),
        ({"mask": spec(2, 4)}, {"mask_type": 1}, "shape (2, 4); expected shape (2, 5)"),
        ({"mask": spec(5, 5)}, {}, "'mask_type': is None; expected 0, 1 or 2"),
    ],
)
def test_an_encoder_layer_refuses(operands: dict[str, Any], params: dict[str, Any], message: str) -> None:
    kind = "aten::_transformer_encoder_layer_fwd"
    assert infer(kind, params=NUMBERS, **ENCODER) == ENCODER["src"]
    with pytest.raises(LayerError) as refused:
        infer(kind, params=NUMBERS | params, **(ENCODER | operands))
    assert message in str(refused.value)


def test_every_onnx_name_is_bare() -> None:
    """`UnsupportedOperator` shows operators of ONNX by their bare names; no type of PNNX's own may look like one."""
    bare = {
        layer.type
        for layer in registry
        if layer.type.isidentifier() and layer.forward.__module__.startswith("engine")
    }
    modules = {layer.forward.__module__ for layer in registry if layer.type in bare}
    assert modules == {f"engine.layers.onnx_{name}" for name in ("elements", "indexing", "recurrent")}
