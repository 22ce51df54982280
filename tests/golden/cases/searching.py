"""Layers that look for elements and count them."""

from typing import Any

from tests.golden.case import LayerCase, boolean, f32, function, i64


def ranked(torch: Any, x: Any) -> Any:
    """Round and sort, so that there are equal values in order."""
    return torch.round(x * 2).sort(-1)[0]


CASES: list[LayerCase] = [
    function("aten::nonzero", "bools", lambda torch, x: torch.nonzero(x), boolean(3, 4)),
    function("aten::nonzero", "ints", lambda torch, x: torch.nonzero(x), i64(2, 3, 4, high=3)),
    function("aten::argwhere", "bools", lambda torch, x: torch.argwhere(x), boolean(3, 4)),
    function("aten::nonzero_numpy", "bools", lambda torch, x: torch.nonzero(x, as_tuple=True), boolean(3, 4)),
    function("aten::where", "condition", lambda torch, x: torch.where(x), boolean(3, 4)),
    function("aten::bincount", "plain", lambda torch, x: torch.bincount(x), i64(20, high=5)),
    function("aten::bincount", "longer", lambda torch, x: torch.bincount(x, minlength=9), i64(20, high=5)),
    function("aten::bincount", "weights", lambda torch, x, w: torch.bincount(x, w), i64(20, high=5), f32(20)),
    function("aten::histc", "bounds", lambda torch, x: torch.histc(x, 5, -1, 1), f32(40)),
    function("aten::histc", "own_bounds", lambda torch, x: torch.histc(x, 7), f32(4, 10)),
    function(
        "aten::searchsorted",
        "rows",
        lambda torch, x, v: torch.searchsorted(ranked(torch, x), v),
        f32(3, 9),
        f32(3, 4),
    ),
    function(
        "aten::searchsorted",
        "right",
        lambda torch, x, v: torch.searchsorted(ranked(torch, x), torch.round(v * 2), right=True),
        f32(9),
        f32(3, 4),
    ),
    function(
        "aten::searchsorted",
        "side",
        lambda torch, x, v: torch.searchsorted(
            ranked(torch, x), torch.round(v * 2), side="right", out_int32=True
        ),
        f32(9),
        f32(3, 4),
    ),
    function(
        "aten::searchsorted",
        "nan",
        lambda torch, x, v: torch.searchsorted(torch.log(x + 1).sort()[0], torch.log(v)),
        f32(3, 9),
        f32(3, 4),
    ),
    function(
        "aten::searchsorted",
        "sorter",
        lambda torch, x, v: torch.searchsorted(x, v, sorter=torch.argsort(x)),
        f32(9),
        f32(3, 4),
    ),
    function(
        "aten::bucketize",
        "plain",
        lambda torch, v, x: torch.bucketize(torch.round(v * 2), ranked(torch, x)),
        f32(3, 4),
        f32(9),
    ),
    function(
        "aten::bucketize",
        "right",
        lambda torch, v, x: torch.bucketize(torch.round(v * 2), ranked(torch, x), right=True),
        f32(3, 4),
        f32(9),
    ),
    function("aten::_unique2", "values", lambda torch, x: torch.unique(x), i64(3, 9, high=9)),
    function(
        "aten::_unique2",
        "all",
        lambda torch, x: torch.unique(torch.round(x), return_inverse=True, return_counts=True),
        f32(3, 9),
    ),
    function(
        "aten::unique_consecutive", "values", lambda torch, x: torch.unique_consecutive(x), i64(30, high=3)
    ),
    function(
        "aten::unique_consecutive",
        "all",
        lambda torch, x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
        i64(30, high=3),
    ),
    function("aten::one_hot", "given", lambda torch, x: torch.nn.functional.one_hot(x, 6), i64(3, 4, high=5)),
    function("aten::one_hot", "found", lambda torch, x: torch.nn.functional.one_hot(x), i64(3, 4, high=5)),
]
