"""Layers that put elements in other places."""

from tests.golden.case import LayerCase, boolean, f32, function, i64, tensor

CASES: list[LayerCase] = [
    function(
        "torch.flip", "one", lambda torch, x: torch.flip(x, (1,)), f32(2, 3, 4), also=((f32(1, 2, 2),),)
    ),
    function("torch.flip", "several", lambda torch, x: torch.flip(x, (0, -1)), i64(2, 3, 4)),
    function("torch.roll", "flat", lambda torch, x: torch.roll(x, 2), f32(2, 3), also=((f32(5, 1),),)),
    function("torch.roll", "one", lambda torch, x: torch.roll(x, -1, 1), f32(2, 3, 4)),
    function("torch.roll", "several", lambda torch, x: torch.roll(x, (1, 5), (0, -1)), f32(2, 3, 4)),
    function("torch.roll", "same_twice", lambda torch, x: torch.roll(x, (1, 1), (1, 1)), boolean(2, 3)),
    function(
        "torch.tile", "same_rank", lambda torch, x: torch.tile(x, (2, 3)), f32(2, 3), also=((f32(1, 2),),)
    ),
    function("torch.tile", "fewer", lambda torch, x: torch.tile(x, (2,)), f32(2, 3)),
    function("torch.tile", "more", lambda torch, x: torch.tile(x, (2, 1, 2)), i64(3)),
    function("Tensor.repeat", "same_rank", lambda torch, x: x.repeat(2, 3), f32(2, 3), also=((f32(1, 2),),)),
    function("Tensor.repeat", "more", lambda torch, x: x.repeat(2, 1, 2), tensor("f64", 2, 3)),
    function("Tensor.repeat", "none", lambda torch, x: x.repeat(0, 2), f32(2, 3)),
    function(
        "Tensor.repeat",
        "dynamic",
        lambda torch, x: x[:1].repeat(x.size(0), 1),
        f32(2, 3),
        also=((f32(4, 3),),),
        export=("inputshape2=[4,3]f32",),
    ),
    function(
        "torch.repeat_interleave",
        "flat",
        lambda torch, x: torch.repeat_interleave(x, 2),
        f32(2, 3),
        also=((f32(1, 4),),),
    ),
    function("torch.repeat_interleave", "dim", lambda torch, x: torch.repeat_interleave(x, 3, -1), f32(2, 3)),
    function(
        "torch.repeat_interleave",
        "counts",
        lambda torch, x, n: torch.repeat_interleave(x, n, 0),
        f32(3, 2),
        i64(3, high=4),
    ),
    function(
        "torch.repeat_interleave",
        "flat_counts",
        lambda torch, x, n: torch.repeat_interleave(x, n),
        i64(4),
        i64(4, high=4),
    ),
    function("torch.as_strided", "plain", lambda torch, x: torch.as_strided(x, (2, 3), (1, 2)), f32(3, 4)),
    function(
        "torch.as_strided", "overlapping", lambda torch, x: torch.as_strided(x, (5, 3), (2, 1)), f32(13)
    ),
    function(
        "torch.as_strided",
        "of_transposed",
        lambda torch, x: torch.as_strided(x.transpose(0, 1), (2, 4), (4, 1)),
        f32(2, 4),
    ),
    function(
        "torch.as_strided", "of_slice", lambda torch, x: torch.as_strided(x[1:], (2, 2), (1, 4)), f32(3, 4)
    ),
]
