"""Products, distances, sums and norms that come under their ATen names."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, function, i64, tensor


def product(name: str, kind: str, *inputs: Input, **arguments: Any) -> LayerCase:
    """Make a case of a function of tensors and keyword arguments."""
    return function(
        f"aten::{name}", kind, lambda torch, *tensors: getattr(torch, name)(*tensors, **arguments), *inputs
    )


def linalg(name: str, kind: str, *inputs: Input, **arguments: Any) -> LayerCase:
    """Make a case of a function of torch.linalg."""
    return function(
        f"aten::linalg_{name}",
        kind,
        lambda torch, *tensors: getattr(torch.linalg, name)(*tensors, **arguments),
        *inputs,
    )


def holes(torch: Any, x: Any) -> Any:
    """Make the values below -1 NaN."""
    return torch.log(x + 1)


CASES: list[LayerCase] = [
    product("dot", "plain", f32(5), f32(5)),
    product("vdot", "complex", tensor("c64", 5), tensor("c64", 5)),
    product("inner", "matrices", f32(3, 4), f32(5, 4)),
    product("outer", "plain", f32(3), f32(4)),
    product("kron", "plain", f32(3, 4), f32(2, 3)),
    product("kron", "ranks", f32(3), f32(2, 2, 3)),
    product("tensordot", "last", f32(3, 4), f32(4, 5), dims=1),
    product("tensordot", "pairs", f32(3, 4, 2), f32(4, 3), dims=([1, 0], [0, 1])),
    product("addmv", "factors", f32(3), f32(3, 4), f32(4), beta=0.5, alpha=2),
    product("addr", "factors", f32(3, 4), f32(3), f32(4), beta=0.5, alpha=2),
    product("addr", "ints", i64(3, 4), i64(3), i64(4)),
    product("addbmm", "factors", f32(3, 5), f32(2, 3, 4), f32(2, 4, 5), beta=0.5, alpha=2),
    function(
        "aten::linalg_multi_dot",
        "three",
        lambda torch, *tensors: torch.linalg.multi_dot(tensors),
        f32(3, 4),
        f32(4, 5),
        f32(5),
    ),
    linalg("matrix_power", "three", f32(2, 3, 3), n=3),
    linalg("vecdot", "first", tensor("c64", 4, 3), tensor("c64", 4, 3), dim=0),
    linalg("cross", "plain", f32(4, 3), f32(4, 3)),
    product("cosine_similarity", "plain", f32(3, 4), f32(3, 4)),
    product("cosine_similarity", "broadcast", f32(3, 1, 4), f32(2, 4), dim=-1),
    product("cdist", "plain", f32(3, 4), f32(5, 4)),
    *(product("cdist", f"order{p}", f32(2, 3, 4), f32(5, 4), p=p) for p in (0.0, 1.0, 3.0, float("inf"))),
    function("aten::pdist", "plain", lambda torch, x: torch.nn.functional.pdist(x), f32(5, 4)),
    product("dist", "plain", f32(3, 4), f32(4)),
    product("dist", "order3", f32(3, 4), f32(3, 4), p=3),
    product("var_mean", "dim", f32(3, 5), dim=1),
    product("var_mean", "biased", f32(3, 5), dim=(0, 1), correction=0, keepdim=True),
    product("std_mean", "dim", f32(3, 5), dim=0, unbiased=False),
    function("aten::nansum", "dim", lambda torch, x: torch.nansum(holes(torch, x), 1), f32(3, 9)),
    product("nansum", "ints", i64(3, 4)),
    function("aten::nanmean", "kept", lambda torch, x: torch.nanmean(holes(torch, x), 0, True), f32(3, 9)),
    product("logcumsumexp", "dim", f32(3, 5), dim=1),
    linalg("norm", "all", f32(3, 4)),
    linalg("norm", "dim", f32(3, 4), dim=1),
    linalg("norm", "order", f32(3, 4), ord=3, dim=0, keepdim=True),
    linalg("norm", "matrix", f32(3, 4), ord=1),
    *(linalg("matrix_norm", f"order_{way}", f32(2, 3, 4), ord=way) for way in ("fro", 1, -1, float("inf"))),
]
