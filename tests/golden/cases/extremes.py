"""Layers that find the largest and the smallest."""

from tests.golden.case import LayerCase, boolean, f32, function, i64, tensor

CASES: list[LayerCase] = [
    function("torch.amax", "all", lambda torch, x: torch.amax(x), f32(2, 3, 4)),
    function("torch.amax", "one", lambda torch, x: torch.amax(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)),
    function(
        "torch.amax", "several_kept", lambda torch, x: torch.amax(x, (0, -1), keepdim=True), i64(2, 3, 4)
    ),
    function("torch.amax", "bool", lambda torch, x: torch.amax(x, 1), boolean(2, 3)),
    function("torch.amin", "all", lambda torch, x: torch.amin(x), tensor("f64", 2, 3)),
    function("torch.amin", "one_kept", lambda torch, x: torch.amin(x, -2, True), f32(2, 3, 4)),
    function(
        "torch.amin", "several", lambda torch, x: torch.amin(x, (1, 2)), f32(2, 3, 4), also=((f32(1, 5, 2),),)
    ),
    function("torch.argmax", "all", lambda torch, x: torch.argmax(x), f32(2, 3, 4)),
    function(
        "torch.argmax", "one", lambda torch, x: torch.argmax(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)
    ),
    function("torch.argmax", "kept", lambda torch, x: torch.argmax(x, -1, keepdim=True), i64(2, 9, high=99)),
    function("torch.argmin", "all", lambda torch, x: torch.argmin(x), f32(2, 3, 4)),
    function("torch.argmin", "one", lambda torch, x: torch.argmin(x, -3), f32(2, 3, 4)),
    function("torch.argmin", "kept", lambda torch, x: torch.argmin(x, 0, True), tensor("f16", 5, 2)),
    function("torch.max", "all", lambda torch, x: torch.max(x), f32(2, 3, 4)),
    function("torch.max", "one", lambda torch, x: torch.max(x, 1), f32(2, 3, 4), also=((f32(1, 5, 2),),)),
    function("torch.max", "kept", lambda torch, x: torch.max(x, -1, keepdim=True), i64(3, 9, high=99)),
    function("torch.max", "values_only", lambda torch, x: torch.max(x, 0)[0], f32(2, 3, 4)),
    function("torch.max", "indices_only", lambda torch, x: torch.max(x, 0)[1], f32(2, 3, 4)),
    function("torch.min", "all", lambda torch, x: torch.min(x), i64(2, 3)),
    function("torch.min", "one", lambda torch, x: torch.min(x, -2), f32(2, 3, 4), also=((f32(1, 5, 2),),)),
    function("torch.min", "kept", lambda torch, x: torch.min(x, 0, True), tensor("f64", 3, 4)),
    function("torch.topk", "largest", lambda torch, x: torch.topk(x, 3), f32(2, 7), also=((f32(3, 4),),)),
    function("torch.topk", "smallest", lambda torch, x: torch.topk(x, 2, 0, largest=False), f32(5, 3)),
    function("torch.topk", "all_of_them", lambda torch, x: torch.topk(x, 4, -2), tensor("f64", 4, 3)),
    function("torch.topk", "unsorted_one", lambda torch, x: torch.topk(x, 1, 1, sorted=False), f32(2, 5)),
    function("torch.topk", "half", lambda torch, x: torch.topk(x, 3)[0], tensor("f16", 40)),
]
