"""Layers that reduce dimensions."""

from tests.golden.case import Case, f32, function, tensor

CASES: list[Case] = [
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
]
