"""Layers that pick elements by index or mask, or put some there."""

from typing import Any

from tests.golden.case import Input, LayerCase, boolean, f32, function, i64, tensor


def put(name: str, write: Any, *inputs: Input, **options: Any) -> LayerCase:
    """Make a case of Tensor.index_put: `write(z, …)` writes to a copy of the first input."""

    def call(torch: Any, x: Any, *others: Any) -> Any:
        z = torch.clone(x)
        write(z, *others)
        return z

    return function("Tensor.index_put", name, call, *inputs, **options)


def put_rows(z: Any, index: Any, values: Any) -> None:
    """Write rows."""
    z[index] = values


def put_columns(z: Any, index: Any, values: Any) -> None:
    """Write columns."""
    z[:, index] = values


def put_pairs(z: Any, index: Any, values: Any) -> None:
    """Write single elements."""
    z[index, index] = values


def put_number(z: Any, index: Any) -> None:
    """Write one number."""
    z[index] = -2.5


def put_infinity(z: Any, index: Any) -> None:
    """Write minus infinity, which PNNX spells as text."""
    z[index] = float("-inf")


CASES: list[LayerCase] = [
    function(
        "Tensor.index",
        "rows",
        lambda torch, x, i: x[i],
        f32(3, 4),
        i64(5, high=3),
        also=((f32(3, 2), i64(2, high=3)),),
    ),
    function("Tensor.index", "columns", lambda torch, x, i: x[:, i], f32(3, 4, 2), i64(2, 3, high=4)),
    function("Tensor.index", "negative", lambda torch, x, i: x[i], f32(3, 4), i64(5, low=-3, high=3)),
    function(
        "Tensor.index", "pairs", lambda torch, x, i, j: x[i, j], f32(3, 4, 2), i64(5, high=3), i64(5, high=4)
    ),
    function(
        "Tensor.index",
        "broadcast",
        lambda torch, x, i, j: x[i, j],
        f32(3, 4),
        i64(2, 1, high=3),
        i64(3, high=4),
    ),
    function("Tensor.index", "apart", lambda torch, x, i: x[i, :, i], f32(3, 4, 3), i64(5, high=3)),
    function("Tensor.index", "last_two", lambda torch, x, i: x[:, i, i], f32(2, 3, 3), i64(5, high=3)),
    function(
        "Tensor.index",
        "mask",
        lambda torch, x, m: x[m],
        f32(3, 4),
        boolean(3, 4),
        also=((f32(2, 2), boolean(2, 2)),),
    ),
    function("Tensor.index", "row_mask", lambda torch, x, m: x[m], f32(6, 4), boolean(6)),
    function("Tensor.index", "column_mask", lambda torch, x, m: x[:, m], f32(3, 8), boolean(8)),
    function("Tensor.index", "lists", lambda torch, x: x[[2, 1], [0, 1]], f32(3, 6)),
    function("Tensor.index", "list_after_none", lambda torch, x: x[..., [1, 0]], f32(2, 3, 2)),
    function(
        "Tensor.index", "mask_lists", lambda torch, x: x[[True, False], [False, False, True]], f32(2, 3, 4)
    ),
    function("Tensor.index", "ints", lambda torch, x, i: x[i], i64(5), tensor("i32", 2, 2, low=0, high=5)),
    function("Tensor.index", "with_slice", lambda torch, x, i: x[i, 1:], f32(3, 4), i64(2, high=3)),
    put("rows", put_rows, f32(3, 4), i64(2, high=3), f32(4)),
    put(
        "columns",
        put_columns,
        f32(2, 3),
        i64(1, high=3),
        f32(2, 1),
        also=((f32(4, 3), i64(1, high=3), f32(4, 1)),),
    ),
    put("pairs", put_pairs, i64(5, 5), i64(1, high=5), i64(1)),
    put("number", put_number, f32(3, 4), i64(2, high=3)),
    put("mask", put_number, f32(3, 4), boolean(3, 4)),
    put("mask_infinity", put_infinity, f32(3, 4), boolean(3, 4)),
    put("mask_values", put_rows, f32(3, 4), boolean(3), f32(4)),
    function(
        "Tensor.index_put",
        "accumulate",
        lambda torch, x, i, v: torch.index_put(x, (i,), v, accumulate=True),
        f32(3, 2),
        i64(6, high=3),
        f32(6, 2),
    ),
    function(
        "Tensor.index_put",
        "accumulate_pairs",
        lambda torch, x, i, v: torch.index_put(x, (i, i), v[0], accumulate=True),
        i64(3, 3),
        i64(6, high=3),
        i64(2),
    ),
    function(
        "torch.gather",
        "plain",
        lambda torch, x, i: torch.gather(x, 1, i),
        f32(2, 3, 4),
        i64(2, 5, 4, high=3),
        also=((f32(3, 3, 1), i64(3, 2, 1, high=3)),),
    ),
    function(
        "torch.gather", "smaller", lambda torch, x, i: torch.gather(x, 0, i), f32(4, 3), i64(5, 2, high=4)
    ),
    function(
        "torch.gather", "last", lambda torch, x, i: torch.gather(x, -1, i), i64(2, 6), i64(2, 2, high=6)
    ),
    function(
        "torch.index_select",
        "first",
        lambda torch, x, i: torch.index_select(x, 0, i),
        f32(3, 4),
        i64(5, high=3),
    ),
    function(
        "torch.index_select",
        "last",
        lambda torch, x, i: torch.index_select(x, -1, i),
        f32(3, 4),
        i64(2, high=4),
        also=((f32(1, 4), i64(3, high=4)),),
    ),
    function(
        "torch.index_select",
        "int32",
        lambda torch, x, i: torch.index_select(x, 1, i),
        i64(2, 3, 2),
        tensor("i32", 4, low=0, high=3),
    ),
    function(
        "torch.masked_select",
        "plain",
        lambda torch, x, m: torch.masked_select(x, m),
        f32(3, 4),
        boolean(3, 4),
        also=((f32(5, 1), boolean(5, 1)),),
    ),
    function(
        "torch.masked_select",
        "broadcast",
        lambda torch, x, m: torch.masked_select(x, m),
        f32(3, 1),
        boolean(2, 1, 4),
    ),
    function(
        "torch.scatter_add",
        "plain",
        lambda torch, x, i, s: torch.scatter_add(x, 1, i, s),
        f32(2, 3),
        i64(2, 5, high=3),
        f32(2, 5),
    ),
    function(
        "torch.scatter_add",
        "smaller",
        lambda torch, x, i, s: torch.scatter_add(x, 0, i, s),
        f32(3, 4),
        i64(6, 2, high=3),
        f32(7, 3),
    ),
    function(
        "torch.scatter_add",
        "ints",
        lambda torch, x, i, s: torch.scatter_add(x, -1, i, s),
        i64(2, 3),
        i64(2, 5, high=3),
        i64(2, 5),
    ),
]
