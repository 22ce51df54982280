"""What the shape rules of the operators with ATen names refuse, and how they word it."""

from typing import Any

import numpy as np
import pytest

from engine import LayerError
from tests.engine.layers.bound import infer, longs, run, singles, spec

X = spec(2, 3, 4)
I = spec(2, dtype="i8")  # noqa: E741  # indices

REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("aten::median", {"input": X}, {"dim": 3}, "'dim': got 3; expected a dimension from -3 to 2"),
    (
        "aten::median",
        {"input": spec(2, 0)},
        {"dim": 1},
        "got shape (2, 0); expected something to choose from",
    ),
    ("aten::kthvalue", {"input": X}, {"k": 5}, "'k': got 5; expected from 1 to 4"),
    ("aten::kthvalue", {"input": spec(2, dtype="?")}, {"k": 1}, "dtype bool"),
    ("aten::quantile", {"input": X}, {"q": 1.5}, "'q': got 1.5; expected from 0 to 1"),
    ("aten::quantile", {"input": X}, {"q": 0.5, "interpolation": "cubic"}, "'interpolation': got 'cubic'"),
    ("aten::diff", {"input": X}, {"n": -1}, "'n': got -1; expected 0 or more"),
    ("aten::tril", {"input": spec(4)}, {}, "1 dimensions; expected at least 2 dimensions"),
    ("aten::scatter", {"input": X, "index": I}, {"dim": 0, "src": 1}, "got 1 dimensions; expected 3"),
    ("aten::scatter", {"input": spec(2), "index": I}, {"dim": 0, "src": 1, "reduce": "mean"}, "got 'mean'"),
    (
        "aten::scatter",
        {"input": spec(2), "index": I, "src": spec(2, dtype="f8")},
        {"dim": 0},
        "got dtype float64; expected that of input, float32",
    ),
    (
        "aten::scatter_reduce",
        {"input": spec(2), "index": I, "src": spec(2)},
        {"dim": 0, "reduce": "max"},
        "'reduce': got 'max'; expected sum or prod or mean or amax or amin",
    ),
    (
        "aten::index_add",
        {"input": spec(5, 4), "index": I, "source": spec(3, 4)},
        {"dim": 0},
        "got shape (3, 4); expected (2, 4)",
    ),
    ("aten::put", {"input": X, "index": I, "source": spec(3)}, {}, "got 3 elements; expected 2"),
    ("aten::lerp", {"input": X, "end": spec(4, dtype="f8")}, {"weight": 0.5}, "got dtype float64"),
    ("aten::isclose", {"input": X, "other": X}, {"rtol": -1.0}, "expected no negative tolerance"),
    ("aten::unsafe_chunk", {"input": X}, {"chunks": 0}, "'chunks': got 0; expected at least 1"),
]


@pytest.mark.parametrize(("kind", "operands", "params", "message"), REFUSED)
def test_refuses(kind: str, operands: dict[str, Any], params: dict[str, Any], message: str) -> None:
    with pytest.raises(LayerError) as refused:
        infer(kind, params=params, **operands)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "operands", "params", "message"),
    [
        (
            "aten::scatter",
            {"input": singles([1, 2]), "index": longs([2])},
            {"dim": 0, "src": 1},
            "got from 2 to 2",
        ),
        (
            "aten::scatter",
            {"input": singles([1, 2]), "index": longs([-1])},
            {"dim": 0, "src": 1},
            "got from -1",
        ),
        ("aten::take", {"input": singles([1, 2]), "index": longs([-3])}, {}, "expected indices from -2 to 1"),
        (
            "aten::take_along_dim",
            {"input": singles([1, 2]), "indices": longs([-1])},
            {"dim": 0},
            "got from -1",
        ),
        (
            "aten::masked_scatter",
            {"input": singles([1, 2]), "mask": np.array([True, True]), "source": singles([1])},
            {},
            "got 1 elements; expected at least 2",
        ),
        ("aten::quantile", {"input": singles([1, 2]), "q": singles([2])}, {}, "expected from 0 to 1"),
    ],
)
def test_refuses_values(kind: str, operands: dict[str, Any], params: dict[str, Any], message: str) -> None:
    with pytest.raises(LayerError) as refused:
        run(kind, params=params, **operands)
    assert message in str(refused.value)
