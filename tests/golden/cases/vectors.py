"""Layers of vectors and diagonals."""

from tests.golden.case import LayerCase, f32, function, i64, tensor

CASES: list[LayerCase] = [
    function("torch.cross", "default", lambda torch, x, y: torch.cross(x, y), f32(3, 4), f32(3, 4)),
    function("torch.cross", "first_of_3", lambda torch, x, y: torch.cross(x, y), f32(2, 3, 3), f32(2, 3, 3)),
    function("torch.cross", "dim", lambda torch, x, y: torch.cross(x, y, 1), f32(2, 3, 3), f32(2, 3, 3)),
    function(
        "torch.cross",
        "negative",
        lambda torch, x, y: torch.cross(x, y, dim=-1),
        f32(4, 3),
        f32(4, 3),
        also=((f32(2, 3), f32(2, 3)),),
    ),
    function("torch.cross", "broadcast", lambda torch, x, y: torch.cross(x, y, dim=-1), f32(4, 3), f32(1, 3)),
    function("torch.cross", "ints", lambda torch, x, y: torch.cross(x, y, dim=0), i64(3, low=-5), i64(3)),
    function(
        "torch.cross",
        "complex",
        lambda torch, x, y: torch.cross(x, y, dim=1),
        tensor("c64", 2, 3),
        tensor("c64", 2, 3),
    ),
    function("torch.diag", "of_matrix", lambda torch, x: torch.diag(x), f32(3, 4), also=((f32(5, 2),),)),
    function("torch.diag", "above", lambda torch, x: torch.diag(x, 1), f32(3, 4)),
    function("torch.diag", "below", lambda torch, x: torch.diag(x, -2), f32(5, 4)),
    function("torch.diag", "to_matrix", lambda torch, x: torch.diag(x), f32(3), also=((f32(2),),)),
    function("torch.diag", "to_matrix_above", lambda torch, x: torch.diag(x, 2), i64(3)),
]
