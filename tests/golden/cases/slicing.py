"""Layers that slice: over one dimension, over several, and writing to a slice."""

from typing import Any

from tests.golden.case import LayerCase, f32, function, i64


def write_middle(torch: Any, x: Any, y: Any) -> Any:
    """Write to a slice of one dimension."""
    z = torch.clone(x)
    z[:, 1:3] = y
    return z


def write_corner(torch: Any, x: Any, y: Any) -> Any:
    """Write to a slice of several dimensions, one of them at one index."""
    z = torch.clone(x)
    z[..., 1, -1] = y
    return z


def write_row(torch: Any, x: Any, y: Any) -> Any:
    """Write to one index."""
    z = torch.clone(x)
    z[1] = y
    return z


def write_steps(torch: Any, x: Any, y: Any) -> Any:
    """Write to every other row."""
    z = torch.clone(x)
    z[::2] = y
    return z


def write_twice(torch: Any, x: Any, y: Any) -> Any:
    """Write to one index and then to another; the exporter copies in between."""
    z = torch.clone(x)
    z[1] = y
    z[:, 0] = 1.5
    z[0] = y
    return z, z[0]


CASES: list[LayerCase] = [
    function("Tensor.slice", "one_dim", lambda torch, x: x[:, 1:3], f32(2, 4, 3), also=((f32(3, 2, 2),),)),
    function(
        "Tensor.slice", "to_the_end", lambda torch, x: x[..., 1:], f32(2, 4, 3), also=((f32(2, 1, 5),),)
    ),
    function("Tensor.slice", "negative", lambda torch, x: x[-3:-1], f32(5, 2), also=((f32(2, 2),),)),
    function("Tensor.slice", "step", lambda torch, x: x[:, 1::3], i64(2, 8)),
    function("Tensor.slice", "past_the_end", lambda torch, x: x[1:99], f32(4, 2)),
    function("Tensor.slice", "empty", lambda torch, x: x[3:1], f32(4, 2)),
    function(
        "Tensor.slice", "several", lambda torch, x: x[1:, :2, ::2], f32(3, 4, 5), also=((f32(2, 1, 4),),)
    ),
    function("Tensor.slice", "with_selects", lambda torch, x: x[1, :, -1, ::2], f32(3, 2, 4, 5)),
    function("Tensor.slice", "only_selects", lambda torch, x: x[1, 2], f32(3, 4, 5)),
    function(
        "Tensor.slice", "ellipsis", lambda torch, x: x[1:, ..., 0], f32(3, 2, 4), also=((f32(2, 3, 1),),)
    ),
    function(
        "Tensor.slice",
        "dynamic",
        lambda torch, x, y: x[:, 1 : y.size(1), y.size(0) - 1, : y.size(2)],
        f32(3, 4, 5, 6),
        f32(2, 3, 4),
        also=((f32(2, 5, 5, 7), f32(2, 4, 5)),),
        export=("inputshape2=[2,5,5,7]f32,[2,4,5]f32",),
    ),
    function(
        "Tensor.slice",
        "dynamic_start",
        lambda torch, x, y: x[:, y.size(1) :],
        f32(3, 4),
        f32(2, 3),
        also=((f32(2, 7), f32(2, 4)),),
        export=("inputshape2=[2,7]f32,[2,4]f32",),
    ),
    function("Tensor.select", "plain", lambda torch, x: x[1], f32(3, 4), also=((f32(2, 6),),)),
    function("Tensor.select", "negative", lambda torch, x: x.select(-1, -2), f32(3, 4)),
    function("Tensor.select", "vector", lambda torch, x: x[2] + x, f32(3)),
    function(
        "torch.narrow", "plain", lambda torch, x: torch.narrow(x, 1, 1, 2), f32(2, 4), also=((f32(3, 5),),)
    ),
    function("torch.narrow", "negative", lambda torch, x: torch.narrow(x, -1, -3, 2), f32(2, 4)),
    function("torch.narrow", "empty", lambda torch, x: torch.narrow(x, 0, 2, 0), f32(2, 4)),
    function(
        "Tensor.slice_copy", "one_dim", write_middle, f32(3, 5), f32(3, 2), also=((f32(2, 4), f32(2, 2)),)
    ),
    function("Tensor.slice_copy", "with_selects", write_corner, f32(2, 3, 4), f32(2)),
    function("Tensor.slice_copy", "select", write_row, f32(2, 3), f32(3)),
    function("Tensor.slice_copy", "steps", write_steps, i64(4, 5), i64(2, 5)),
    function(
        "torch.slice_scatter",
        "plain",
        lambda torch, x, y: torch.slice_scatter(x, y, 1, 1, 3),
        f32(2, 4),
        f32(2, 2),
    ),
    function(
        "torch.slice_scatter",
        "step",
        lambda torch, x, y: torch.slice_scatter(x, y, -1, step=2),
        f32(2, 5),
        f32(2, 3),
    ),
    function(
        "torch.slice_scatter",
        "negative",
        lambda torch, x, y: torch.slice_scatter(x, y, start=-2),
        f32(4, 2),
        f32(2, 2),
    ),
    function("Tensor.clone", "between_writes", write_twice, f32(3, 4), f32(4), also=((f32(2, 3), f32(3)),)),
]
