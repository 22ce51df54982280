"""Layers that put values where indices say."""

from typing import Any

from tests.golden.case import Input, LayerCase, boolean, f32, function, i64


def scatter(name: str, call: Any, *inputs: Input) -> LayerCase:
    """Make a case of aten::scatter."""
    return function("aten::scatter", name, call, *inputs)


def reductions(kind: str, source: Input, target: Input) -> list[LayerCase]:
    """Make a case of each reduction, with what is there already and without."""
    return [
        function(
            "aten::scatter_reduce",
            f"{kind}_{way}" + ("" if keep else "_again"),
            lambda torch, x, i, s, way=way, keep=keep: torch.scatter_reduce(
                x, 0, i, s, way, include_self=keep
            ),
            target,
            i64(*source.shape, high=target.shape[0]),
            source,
        )
        for way in ("sum", "prod", "mean", "amax", "amin")
        for keep in (True, False)
    ]


CASES: list[LayerCase] = [
    scatter(
        "columns", lambda torch, x, i, s: torch.scatter(x, 1, i, s), f32(3, 5), i64(3, 4, high=5), f32(3, 4)
    ),
    scatter(
        "rows", lambda torch, x, i, s: torch.scatter(x, 0, i, s), f32(5, 4), i64(3, 2, high=5), f32(3, 4)
    ),
    scatter(
        "repeated", lambda torch, x, i, s: torch.scatter(x, 1, i, s), f32(3, 2), i64(3, 9, high=2), f32(3, 9)
    ),
    scatter("number", lambda torch, x, i: torch.scatter(x, 1, i, 2.5), f32(3, 5), i64(3, 2, high=5)),
    scatter("ints", lambda torch, x, i: torch.scatter(x, -1, i, 7), i64(3, 5), i64(3, 2, high=5)),
    scatter(
        "one_hot", lambda torch, x, i: torch.zeros_like(x).scatter(1, i, 1.0), f32(3, 5), i64(3, 1, high=5)
    ),
    scatter(
        "multiply",
        lambda torch, x, i, s: torch.scatter(x, 1, i, s, reduce="multiply"),
        f32(3, 5),
        i64(3, 4, high=5),
        f32(3, 4),
    ),
    *reductions("floats", f32(6, 4), f32(5, 4)),
    *reductions("ints", i64(6, 4, low=-9, high=9), i64(5, 4, low=-9, high=9)),
    function(
        "aten::index_add",
        "rows",
        lambda torch, x, i, s: torch.index_add(x, 0, i, s),
        f32(5, 4),
        i64(7, high=5),
        f32(7, 4),
    ),
    function(
        "aten::index_add",
        "alpha",
        lambda torch, x, i, s: torch.index_add(x, 1, i, s, alpha=-2),
        i64(4, 5),
        i64(7, high=5),
        i64(4, 7),
    ),
    function(
        "aten::index_copy",
        "rows",
        lambda torch, x, i, s: torch.index_copy(x, 0, i, s),
        f32(5, 4),
        i64(1, high=5),
        f32(1, 4),
    ),
    function(
        "aten::index_fill",
        "columns",
        lambda torch, x, i: torch.index_fill(x, 1, i, -1.5),
        f32(4, 5),
        i64(3, low=-5, high=5),
    ),
    *(
        function(
            "aten::index_reduce",
            f"{way}{'' if keep else '_again'}",
            lambda torch, x, i, s, way=way, keep=keep: torch.index_reduce(x, 0, i, s, way, include_self=keep),
            f32(5, 4),
            i64(7, high=5),
            f32(7, 4),
        )
        for way in ("prod", "mean", "amax", "amin")
        for keep in (True, False)
    ),
    function(
        "aten::put", "plain", lambda torch, x, i, s: x.put(i, s), f32(3, 5), i64(1, low=-15, high=15), f32(1)
    ),
    function(
        "aten::put",
        "accumulate",
        lambda torch, x, i, s: x.put(i, s, accumulate=True),
        f32(3, 2),
        i64(9, low=-6, high=6),
        f32(9),
    ),
    function(
        "aten::take", "plain", lambda torch, x, i: torch.take(x, i), f32(3, 5), i64(2, 4, low=-15, high=15)
    ),
    function(
        "aten::take_along_dim",
        "dim",
        lambda torch, x, i: torch.take_along_dim(x, i, 1),
        f32(3, 5),
        i64(3, 7, high=5),
    ),
    function(
        "aten::take_along_dim",
        "broadcast",
        lambda torch, x, i: torch.take_along_dim(x, i, 1),
        f32(3, 5, 1),
        i64(1, 7, 2, high=5),
    ),
    function(
        "aten::take_along_dim",
        "flat",
        lambda torch, x, i: torch.take_along_dim(x, i),
        f32(3, 5),
        i64(4, high=15),
    ),
    function(
        "aten::masked_scatter",
        "plain",
        lambda torch, x, m, s: x.masked_scatter(m, s),
        f32(3, 4),
        boolean(3, 4),
        f32(13),
    ),
    function(
        "aten::masked_scatter",
        "broadcast",
        lambda torch, x, m, s: x.masked_scatter(m, s),
        f32(3, 4),
        boolean(2, 1, 4),
        f32(24),
    ),
]
