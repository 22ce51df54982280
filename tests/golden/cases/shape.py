"""Layers that give elements another shape, without touching them."""

from tests.golden.case import LayerCase, boolean, f32, function, i64, tensor

CASES: list[LayerCase] = [
    function("torch.flatten", "all", lambda torch, x: torch.flatten(x), f32(2, 3, 4)),
    function(
        "torch.flatten",
        "from_1",
        lambda torch, x: torch.flatten(x, 1),
        f32(2, 3, 4, 2),
        also=((f32(5, 1, 7, 3),),),
    ),
    function("torch.flatten", "negative_dims", lambda torch, x: torch.flatten(x, -3, -2), f32(2, 3, 4, 2)),
    function("torch.flatten", "one_dim", lambda torch, x: torch.flatten(x, 1, 1), f32(2, 3, 4)),
    function(
        "torch.flatten", "after_permute", lambda torch, x: torch.flatten(x.permute(2, 0, 1), 1), f32(2, 3, 4)
    ),
    function("torch.flatten", "integers", lambda torch, x: torch.flatten(x, 0, 1), i64(2, 3, 4)),
    function("Tensor.unflatten", "middle", lambda torch, x: x.unflatten(1, (2, 3)), f32(2, 6, 3)),
    function(
        "Tensor.unflatten",
        "worked_out",
        lambda torch, x: x.unflatten(-1, (2, -1, 2)),
        f32(3, 8),
        also=((f32(2, 16),),),
    ),
    function("Tensor.reshape", "plain", lambda torch, x: x.reshape(6, 4), f32(2, 3, 4)),
    function(
        "Tensor.reshape",
        "worked_out",
        lambda torch, x: x.reshape(2, -1),
        f32(2, 3, 4),
    ),
    function("Tensor.reshape", "view", lambda torch, x: x.view(3, 2, 4), tensor("f64", 2, 3, 4)),
    function(
        "Tensor.reshape", "of_transposed", lambda torch, x: x.transpose(0, 2).reshape(-1, 3), f32(2, 3, 4)
    ),
    function("Tensor.reshape", "bool", lambda torch, x: x.reshape(-1), boolean(2, 3)),
    function(
        "Tensor.reshape",
        "dynamic",
        lambda torch, x: x.view(x.size(0), x.size(2), -1),
        f32(2, 3, 4),
        also=((f32(3, 5, 2),),),
        export=("inputshape2=[3,5,2]f32",),
    ),
    function("Tensor.reshape_as", "plain", lambda torch, x, y: x.reshape_as(y), f32(2, 3, 4), f32(6, 4)),
    function("aten::view_as", "plain", lambda torch, x, y: x.view_as(y), f32(2, 3, 4), f32(6, 4)),
    function(
        "Tensor.permute",
        "plain",
        lambda torch, x: x.permute(2, 0, 3, 1),
        f32(2, 3, 4, 5),
        also=((f32(1, 2, 3, 4),),),
    ),
    function("Tensor.permute", "negative", lambda torch, x: x.permute(-1, 0, -2), i64(2, 3, 4)),
    function("Tensor.permute", "function", lambda torch, x: torch.permute(x, (1, 0)), tensor("c64", 2, 3)),
    function(
        "torch.transpose",
        "plain",
        lambda torch, x: torch.transpose(x, 0, 2),
        f32(2, 3, 4),
        also=((f32(4, 3, 1),),),
    ),
    function("torch.transpose", "negative", lambda torch, x: x.transpose(-1, -2), f32(2, 3, 4)),
    function("torch.t", "matrix", lambda torch, x: torch.t(x), f32(2, 3)),
    function("torch.t", "vector", lambda torch, x: torch.t(x), f32(3)),
    function(
        "torch.squeeze", "all", lambda torch, x: torch.squeeze(x), f32(1, 2, 1, 3), also=((f32(1, 4, 1, 1),),)
    ),
    function("torch.squeeze", "one", lambda torch, x: torch.squeeze(x, -2), f32(1, 2, 1, 3)),
    function(
        "torch.squeeze",
        "not_one",
        lambda torch, x: torch.squeeze(x, 1),
        f32(1, 2, 1, 3),
        also=((f32(2, 1, 4, 5),),),
    ),
    function("torch.squeeze", "several", lambda torch, x: torch.squeeze(x, (0, 1, 2)), f32(1, 2, 1, 3)),
    function(
        "torch.unsqueeze", "first", lambda torch, x: torch.unsqueeze(x, 0), f32(2, 3), also=((f32(5, 1),),)
    ),
    function("torch.unsqueeze", "last", lambda torch, x: torch.unsqueeze(x, -1), boolean(2, 3)),
    function("torch.unsqueeze", "middle", lambda torch, x: torch.unsqueeze(x, -2), f32(2, 3)),
    function("Tensor.expand", "plain", lambda torch, x: x.expand(2, 3, 4), f32(2, 1, 4)),
    function(
        "Tensor.expand", "leading", lambda torch, x: x.expand(2, 3, -1), f32(1, 4), also=((f32(3, 2),),)
    ),
    function(
        "Tensor.expand",
        "dynamic",
        lambda torch, x, y: x.expand(y.size(0), 3, 4),
        f32(1, 4),
        f32(2, 3),
        also=((f32(1, 4), f32(5, 3)),),
        export=("inputshape2=[1,4]f32,[5,3]f32",),
    ),
    function("Tensor.expand_as", "plain", lambda torch, x, y: x.expand_as(y), f32(3, 1), f32(2, 3, 4)),
    function("torch.clone", "plain", lambda torch, x: torch.clone(x), f32(2, 3)),
]
