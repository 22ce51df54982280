"""Layers that reduce dimensions."""

from tests.golden.case import LayerCase, boolean, f32, function, i64, tensor

CASES: list[LayerCase] = [
    function("torch.mean", "all", lambda torch, x: torch.mean(x), f32(2, 3, 4)),
    function("torch.mean", "one", lambda torch, x: torch.mean(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)),
    function("torch.mean", "negative_kept", lambda torch, x: torch.mean(x, -1, True), f32(2, 3, 4)),
    function(
        "torch.mean",
        "several",
        lambda torch, x: torch.mean(x, (2, 3)),
        f32(2, 3, 4, 5),
        also=((f32(1, 2, 7, 6),),),
    ),
    function(
        "torch.mean", "several_kept", lambda torch, x: torch.mean(x, (-1, 0), keepdim=True), f32(2, 3, 4)
    ),
    function("torch.mean", "half", lambda torch, x: torch.mean(x, 1), tensor("f16", 2, 300), rtol=1e-3),
    function("torch.mean", "double", lambda torch, x: torch.mean(x, 1), tensor("f64", 2, 3)),
    function("torch.mean", "complex", lambda torch, x: torch.mean(x, 0), tensor("c64", 2, 3)),
    function("torch.sum", "all", lambda torch, x: torch.sum(x), f32(2, 3, 4)),
    function("torch.sum", "one", lambda torch, x: torch.sum(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)),
    function("torch.sum", "several_kept", lambda torch, x: torch.sum(x, (0, -1), True), f32(2, 3, 4)),
    function("torch.sum", "bools", lambda torch, x: torch.sum(x, 0), boolean(9, 2)),
    function("torch.sum", "bytes", lambda torch, x: torch.sum(x), tensor("u8", 9, low=0, high=200)),
    function("torch.sum", "half", lambda torch, x: torch.sum(x, -1), tensor("f16", 2, 99), rtol=1e-3),
    function("torch.sum", "complex", lambda torch, x: torch.sum(x, 1), tensor("c128", 2, 3)),
    function("torch.prod", "one", lambda torch, x: torch.prod(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)),
    function("torch.prod", "kept", lambda torch, x: torch.prod(x, -1, True), i64(3, 4)),
    function("torch.prod", "complex", lambda torch, x: torch.prod(x, 0), tensor("c64", 3, 4)),
    function("torch.std", "one", lambda torch, x: torch.std(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)),
    function("torch.std", "population", lambda torch, x: torch.std(x, (0, -1), False), f32(2, 3, 4)),
    function(
        "torch.std",
        "correction_kept",
        lambda torch, x: torch.std(x, 1, correction=2, keepdim=True),
        f32(2, 5),
    ),
    function("torch.std", "all", lambda torch, x: torch.std(x, dim=None, correction=1), f32(2, 3)),
    function("torch.std", "half", lambda torch, x: torch.std(x, -1), tensor("f16", 2, 50), rtol=1e-3),
    function("torch.var", "one", lambda torch, x: torch.var(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)),
    function(
        "torch.var", "population_kept", lambda torch, x: torch.var(x, (1, 2), False, True), f32(2, 3, 4)
    ),
    function("torch.var", "correction_0", lambda torch, x: torch.var(x, 1, correction=0), f32(2, 5)),
    function("torch.var", "correction_2", lambda torch, x: torch.var(x, 1, correction=2), f32(2, 5)),
    function("torch.var", "all", lambda torch, x: torch.var(x, dim=None, correction=1), tensor("f64", 2, 3)),
    function("torch.var", "complex", lambda torch, x: torch.var(x, 1), tensor("c64", 2, 5)),
    function("torch.norm", "all", lambda torch, x: torch.norm(x), f32(2, 3, 4)),
    function(
        "torch.norm", "one", lambda torch, x: torch.norm(x, 2, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)
    ),
    function("torch.norm", "first_order", lambda torch, x: torch.norm(x, 1, -1, True), f32(2, 3, 4)),
    function("torch.norm", "third_order", lambda torch, x: torch.norm(x, 3, (0, 1)), f32(2, 3, 4)),
    function("torch.norm", "fraction", lambda torch, x: torch.norm(x, 0.5, 1), f32(2, 3)),
    function("torch.norm", "negative", lambda torch, x: torch.norm(x, -2, 1), f32(2, 3, low=1)),
    function("torch.norm", "count", lambda torch, x: torch.norm(torch.clamp(x, min=0), 0, 1), f32(2, 9)),
    function("torch.norm", "infinity", lambda torch, x: torch.norm(x, float("inf"), 1), f32(2, 5)),
    function("torch.norm", "minus_infinity", lambda torch, x: torch.norm(x, float("-inf"), 1), f32(2, 5)),
    function("torch.norm", "frobenius", lambda torch, x: torch.norm(x, "fro", (0, 1)), tensor("f64", 2, 5)),
    function("torch.norm", "complex", lambda torch, x: torch.norm(x, 2, 1), tensor("c64", 2, 5)),
    function("torch.norm", "half", lambda torch, x: torch.norm(x, 2, 1), tensor("f16", 2, 50), rtol=1e-3),
    function(
        "torch.logsumexp",
        "one",
        lambda torch, x: torch.logsumexp(x, 1),
        f32(2, 3, 4),
        also=((f32(1, 5, 2),),),
    ),
    function(
        "torch.logsumexp", "several_kept", lambda torch, x: torch.logsumexp(x, (0, -1), True), f32(2, 3, 4)
    ),
    function("torch.logsumexp", "large", lambda torch, x: torch.logsumexp(x * 100, 0), f32(3, 4)),
    function(
        "torch.logsumexp", "infinite", lambda torch, x: torch.logsumexp(x / torch.zeros_like(x), 1), f32(4, 2)
    ),
    function("torch.logsumexp", "ints", lambda torch, x: torch.logsumexp(x, 0), i64(4, 2)),
    function(
        "torch.cumsum", "floats", lambda torch, x: torch.cumsum(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)
    ),
    function("torch.cumsum", "bools", lambda torch, x: torch.cumsum(x, -1), boolean(2, 9)),
    function("torch.cumsum", "ints", lambda torch, x: torch.cumsum(x, 0), tensor("i32", 5, 2, high=9)),
    function(
        "torch.cumsum", "half", lambda torch, x: torch.cumsum(x, 0), tensor("f16", 30), rtol=1e-2, atol=1e-2
    ),
    function("torch.cumprod", "floats", lambda torch, x: torch.cumprod(x, -2), f32(2, 3, 4)),
    function("torch.cumprod", "ints", lambda torch, x: torch.cumprod(x, 1), i64(2, 5), also=((i64(3, 2),),)),
    function("torch.cumprod", "complex", lambda torch, x: torch.cumprod(x, 0), tensor("c64", 3, 2)),
    function("torch.mean", "dtype", lambda torch, x: torch.mean(x, 1, dtype=torch.float64), f32(2, 3)),
    function(
        "torch.mean", "dtype_of_ints", lambda torch, x: torch.mean(x, 1, dtype=torch.float32), i64(2, 3)
    ),
    function("torch.sum", "dtype", lambda torch, x: torch.sum(x, 1, dtype=torch.float64), f32(2, 3)),
    function("torch.sum", "dtype_of_ints", lambda torch, x: torch.sum(x, 0, dtype=torch.int32), i64(2, 3)),
    function("torch.prod", "dtype", lambda torch, x: torch.prod(x, 1, dtype=torch.float32), i64(2, 3)),
    function("torch.norm", "dtype", lambda torch, x: torch.norm(x, 2, 1, dtype=torch.float64), f32(2, 3)),
    function("torch.cumsum", "dtype", lambda torch, x: torch.cumsum(x, 1, dtype=torch.float64), f32(2, 3)),
    function("torch.cumprod", "dtype", lambda torch, x: torch.cumprod(x, 1, dtype=torch.int32), i64(2, 3)),
]
