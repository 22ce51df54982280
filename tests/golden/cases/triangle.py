"""Layers that cut triangles and diagonals out of matrices."""

from tests.golden.case import LayerCase, boolean, f32, function, i64

CASES: list[LayerCase] = [
    function("aten::tril", "plain", lambda torch, x: torch.tril(x), f32(4, 5), also=((f32(4, 2),),)),
    function("aten::tril", "above", lambda torch, x: torch.tril(x, 2), f32(2, 5, 4)),
    function("aten::tril", "below", lambda torch, x: x.tril(-1), i64(4, 4)),
    function("aten::tril", "infinite", lambda torch, x: torch.tril(x / 0.0), f32(4, 4)),
    function("aten::triu", "plain", lambda torch, x: torch.triu(x), f32(4, 5)),
    function("aten::triu", "above", lambda torch, x: torch.triu(x, 1), boolean(2, 5, 4)),
    function("aten::triu", "below", lambda torch, x: x.triu(-2), f32(5, 4)),
]
