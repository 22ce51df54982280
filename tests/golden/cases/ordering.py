"""Layers that put values in order or look at their order."""

from typing import Any

from tests.golden.case import LayerCase, boolean, f32, function, i64


def ties(torch: Any, x: Any) -> Any:
    """Round, so that values are equal."""
    return torch.round(x)


def holes(torch: Any, x: Any) -> Any:
    """Make a quarter of the values NaN, and some infinite."""
    return torch.log(torch.relu(x + 1)) * torch.where(x < -1.5, float("nan"), 1.0)


def reduction(name: str, *arguments: Any) -> list[LayerCase]:
    """Make cases of an operator that gives values and indices: plain, with NaN, of integers, with a dimension kept."""

    def call(torch: Any, x: Any, *others: Any) -> Any:
        return getattr(torch, name)(x, *arguments, *others)

    made = [
        function(f"aten::{name}", "last", lambda torch, x: call(torch, x, -1, False), f32(3, 7)),
        function(f"aten::{name}", "first_kept", lambda torch, x: call(torch, x, 0, True), f32(5, 2, 3)),
        function(f"aten::{name}", "scalar", lambda torch, x: call(torch, x[0], 0, False), f32(1)),
    ]
    if name != "mode":
        nan = function(
            f"aten::{name}", "nan", lambda torch, x: call(torch, holes(torch, x), 1, False)[0], f32(6, 9)
        )
        made.append(nan)
    return made


CASES: list[LayerCase] = [
    function("aten::sort", "last", lambda torch, x: torch.sort(x), f32(3, 7), also=((f32(3, 2),),)),
    function("aten::sort", "first_descending", lambda torch, x: torch.sort(x, 0, True), f32(5, 2, 3)),
    function(
        "aten::sort", "ties", lambda torch, x: torch.sort(ties(torch, x), dim=1, stable=True), f32(3, 30)
    ),
    function(
        "aten::sort",
        "ties_descending",
        lambda torch, x: torch.sort(x, dim=1, stable=True, descending=True),
        i64(3, 30, high=4),
    ),
    function("aten::sort", "nan", lambda torch, x: torch.sort(holes(torch, x)), f32(3, 12)),
    function(
        "aten::sort", "nan_descending", lambda torch, x: torch.sort(holes(torch, x), 0, True), f32(12, 3)
    ),
    function("aten::sort", "bool", lambda torch, x: torch.sort(x, stable=True), boolean(2, 9)),
    function("aten::sort", "values_alone", lambda torch, x: torch.sort(x)[0], f32(3, 7)),
    function("aten::sort", "indices_alone", lambda torch, x: torch.sort(x)[1], f32(3, 7)),
    function("aten::argsort", "last", lambda torch, x: torch.argsort(x), f32(3, 7)),
    function("aten::argsort", "descending", lambda torch, x: torch.argsort(x, 0, True), f32(7, 2)),
    function(
        "aten::argsort", "stable", lambda torch, x: torch.argsort(ties(torch, x), stable=True), f32(2, 30)
    ),
    function("aten::msort", "plain", lambda torch, x: torch.msort(x), f32(5, 3)),
    function("aten::median", "all", lambda torch, x: torch.median(x), f32(3, 4)),
    function("aten::median", "all_nan", lambda torch, x: torch.median(holes(torch, x)), f32(6, 9)),
    function("aten::median", "ints", lambda torch, x: torch.median(x), i64(3, 5)),
    function("aten::median", "nan_indices", lambda torch, x: torch.median(holes(torch, x), 1), f32(6, 5)),
    function("aten::nanmedian", "all", lambda torch, x: torch.nanmedian(holes(torch, x)), f32(6, 9)),
    *reduction("median"),
    *reduction("nanmedian"),
    *reduction("mode"),
    function("aten::mode", "ties", lambda torch, x: torch.mode(ties(torch, x), 1), f32(6, 12)),
    function("aten::mode", "ints", lambda torch, x: torch.mode(x, 0), i64(12, 5, high=4)),
    *reduction("kthvalue", 1),
    function("aten::kthvalue", "third", lambda torch, x: torch.kthvalue(x, 3), f32(3, 7)),
    function("aten::cummax", "last", lambda torch, x: torch.cummax(x, -1), f32(3, 9)),
    function("aten::cummax", "ties", lambda torch, x: torch.cummax(ties(torch, x), 0), f32(9, 3)),
    function("aten::cummax", "nan", lambda torch, x: torch.cummax(holes(torch, x), 1), f32(4, 12)),
    function("aten::cummin", "last", lambda torch, x: torch.cummin(x, -1), f32(3, 9)),
    function("aten::cummin", "ties", lambda torch, x: torch.cummin(x, 1), i64(3, 12, high=5)),
    function("aten::cummin", "nan", lambda torch, x: torch.cummin(holes(torch, x), 0), f32(12, 4)),
    function("aten::quantile", "dim", lambda torch, x: torch.quantile(x, 0.3, dim=1), f32(3, 7)),
    function("aten::quantile", "all", lambda torch, x: torch.quantile(x, 0.9), f32(3, 7)),
    function(
        "aten::quantile",
        "several",
        lambda torch, x, q: torch.quantile(x, q, 0, True),
        f32(5, 3),
        f32(4, low=0, high=1),
    ),
    function(
        "aten::quantile", "nan", lambda torch, x: torch.quantile(holes(torch, x), 0.3, dim=1), f32(6, 5)
    ),
    *(
        function(
            "aten::quantile",
            way,
            lambda torch, x, way=way: torch.quantile(x, 0.55, dim=0, interpolation=way),
            f32(6, 4),
        )
        for way in ("lower", "higher", "nearest", "midpoint")
    ),
    function(
        "aten::nanquantile",
        "nan",
        lambda torch, x: torch.nanquantile(holes(torch, x), 0.3, dim=1, keepdim=True),
        f32(6, 9),
    ),
    function("aten::aminmax", "all", lambda torch, x: torch.aminmax(x), f32(3, 4)),
    function("aten::aminmax", "dim", lambda torch, x: torch.aminmax(x, dim=1, keepdim=True), f32(3, 4)),
    function("aten::aminmax", "nan", lambda torch, x: torch.aminmax(holes(torch, x), dim=0), f32(9, 6)),
    function("aten::diff", "once", lambda torch, x: torch.diff(x), f32(3, 4)),
    function("aten::diff", "twice", lambda torch, x: torch.diff(x, 2, 0), f32(5, 4)),
    function("aten::diff", "bool", lambda torch, x: torch.diff(x), boolean(3, 9)),
    function(
        "aten::diff", "prepend", lambda torch, x, y: torch.diff(x, prepend=y, append=x), f32(3, 4), f32(3, 1)
    ),
]
