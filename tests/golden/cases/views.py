"""Layers that look at tensors in another way, or join them, under their ATen names."""

from typing import Any

from tests.golden.case import Input, LayerCase, boolean, f32, function, i64, tensor


def join(name: str, *inputs: Input) -> LayerCase:
    """Make a case of a function of a list of tensors."""
    kind = "_".join(f"{item.dtype}{len(item.shape)}" for item in inputs)
    return function(f"aten::{name}", kind, lambda torch, *tensors: getattr(torch, name)(tensors), *inputs)


def view(name: str, kind: str, *inputs: Input, call: Any = None, **options: Any) -> LayerCase:
    """Make a case of a function of one tensor."""
    made = call or (lambda torch, x: getattr(torch, name)(x))
    return function(f"aten::{name}", kind, made, *inputs, **options)


CASES: list[LayerCase] = [
    view("mT", "stack", f32(2, 3, 4), call=lambda torch, x: x.mT),
    view("mH", "complex", tensor("c64", 3, 4), call=lambda torch, x: x.mH),
    view("numpy_T", "matrix", f32(3, 4), call=lambda torch, x: x.T),
    view("flipud", "plain", f32(3, 4)),
    view("fliplr", "plain", i64(3, 4)),
    view("rot90", "once", f32(3, 4), call=lambda torch, x: torch.rot90(x)),
    view("rot90", "back", f32(2, 3, 4), call=lambda torch, x: torch.rot90(x, -1, (1, 2))),
    view("rot90", "half", f32(3, 4), call=lambda torch, x: torch.rot90(x, 2, (1, 0))),
    view("movedim", "one", f32(2, 3, 4), call=lambda torch, x: torch.movedim(x, 0, -1)),
    view("movedim", "two", f32(2, 3, 4), call=lambda torch, x: torch.movedim(x, (0, 2), (1, 0))),
    view("ravel", "plain", f32(3, 4), also=((f32(3, 2),),)),
    view("unfold", "step2", f32(3, 9), call=lambda torch, x: x.unfold(1, 3, 2), also=((f32(3, 8),),)),
    view("unfold", "first", f32(5, 2, 3), call=lambda torch, x: x.unfold(0, 2, 1)),
    view("broadcast_to", "more", f32(3, 1), call=lambda torch, x: torch.broadcast_to(x, (2, 3, 4))),
    view("broadcast_to", "kept", f32(3, 1), call=lambda torch, x: torch.broadcast_to(x, (2, -1, 4))),
    view("atleast_1d", "plain", f32(2, 3), call=lambda torch, x: torch.atleast_1d(x[0, 0])),
    view("atleast_2d", "plain", f32(3)),
    view("atleast_3d", "plain", f32(3, 4)),
    view("atleast_3d", "vector", f32(3)),
    view("sum_to_size", "plain", f32(2, 3, 4), call=lambda torch, x: x.sum_to_size(3, 1)),
    view("numel", "plain", f32(2, 3), call=lambda torch, x: x * x.numel()),
    view("zero", "plain", f32(2, 3), call=lambda torch, x: x.clone().zero_()),
    join("hstack", f32(3), f32(2)),
    join("hstack", f32(3, 2), f32(3, 4)),
    join("vstack", f32(3), f32(2, 3)),
    join("dstack", f32(3), f32(3)),
    join("dstack", f32(2, 3), i64(2, 3, 1)),
    join("column_stack", f32(3), f32(3, 2)),
    view("hsplit", "sections", f32(3, 4), call=lambda torch, x: torch.hsplit(x, 2)),
    view("hsplit", "vector", f32(4), call=lambda torch, x: torch.hsplit(x, (1, 3))),
    view("vsplit", "places", f32(5, 2), call=lambda torch, x: torch.vsplit(x, (1, 3))),
    view("dsplit", "sections", f32(2, 3, 4), call=lambda torch, x: torch.dsplit(x, 2)),
    view(
        "broadcast_tensors",
        "two",
        f32(3, 1),
        f32(1, 4),
        call=lambda torch, x, y: torch.broadcast_tensors(x, y),
    ),
    view("meshgrid", "ij", f32(3), f32(4), call=lambda torch, x, y: torch.meshgrid(x, y, indexing="ij")),
    view("meshgrid", "xy", f32(3), f32(4), call=lambda torch, x, y: torch.meshgrid(x, y, indexing="xy")),
    view("cartesian_prod", "two", f32(3), f32(4), call=lambda torch, x, y: torch.cartesian_prod(x, y)),
    view("block_diag", "two", f32(2, 3), f32(4), call=lambda torch, x, y: torch.block_diag(x, y)),
    view("diagonal", "plain", f32(4, 5), also=((f32(4, 3),),)),
    view("diagonal", "offset", f32(2, 4, 5), call=lambda torch, x: torch.diagonal(x, -1, 1, 2)),
    view("linalg_diagonal", "stack", f32(2, 4, 5), call=lambda torch, x: torch.linalg.diagonal(x, offset=1)),
    view("diag_embed", "plain", f32(2, 3)),
    view("diag_embed", "places", f32(2, 3), call=lambda torch, x: torch.diag_embed(x, -1, 0, 2)),
    view("diag_embed", "turned", f32(2, 3), call=lambda torch, x: torch.diag_embed(x, 1, 2, 0)),
    view("diagflat", "matrix", f32(2, 3), call=lambda torch, x: torch.diagflat(x, 1)),
    view(
        "diagonal_scatter", "plain", f32(4, 5), f32(4), call=lambda torch, x, y: torch.diagonal_scatter(x, y)
    ),
    view(
        "diagonal_scatter",
        "below",
        f32(4, 5),
        f32(3),
        call=lambda torch, x, y: torch.diagonal_scatter(x, y, -1),
    ),
    view("fill_diagonal", "plain", f32(5, 3), call=lambda torch, x: x.clone().fill_diagonal_(2.5)),
    view("fill_diagonal", "wrap", f32(9, 3), call=lambda torch, x: x.clone().fill_diagonal_(2.5, wrap=True)),
    view("trace", "plain", f32(4, 5)),
    view("trace", "ints", tensor("i32", 4, 4, low=-9, high=9)),
    view("any", "all", boolean(3, 4)),
    view("any", "dim", f32(3, 4), call=lambda torch, x: torch.any(x > 1.5, dim=1)),
    view("all", "kept", f32(3, 4), call=lambda torch, x: torch.all(x > -1.5, dim=0, keepdim=True)),
    view("all", "bytes", tensor("u8", 3, 4, low=0, high=3), call=lambda torch, x: torch.all(x, dim=0)),
    view("count_nonzero", "all", i64(3, 4, high=2)),
    view(
        "count_nonzero",
        "dims",
        i64(3, 4, 2, high=2),
        call=lambda torch, x: torch.count_nonzero(x, dim=(0, 2)),
    ),
]
