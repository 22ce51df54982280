"""Look-up tables of vectors."""

from tests.golden.case import LayerCase, f32, function, i64, module, tensor

CASES: list[LayerCase] = [
    module("nn.Embedding", "plain", lambda nn: nn.Embedding(7, 3), i64(4, high=7), also=((i64(9, high=7),),)),
    module("nn.Embedding", "rank3", lambda nn: nn.Embedding(7, 3), i64(2, 3, 2, high=7)),
    module("nn.Embedding", "padding", lambda nn: nn.Embedding(7, 3, padding_idx=2), i64(2, 5, high=7)),
    module("nn.Embedding", "f64", lambda nn: nn.Embedding(5, 2).double(), i64(2, 5, high=5)),
    function(
        "F.embedding",
        "plain",
        lambda torch, x, w: torch.nn.functional.embedding(x, w),
        i64(5, high=4),
        f32(4, 3),
    ),
    function(
        "F.embedding",
        "i32",
        lambda torch, x, w: torch.nn.functional.embedding(x, w, padding_idx=1),
        *(tensor("i32", 2, 3, low=0, high=4), f32(4, 3)),
    ),
    function(
        "F.embedding",
        "f16",
        lambda torch, x, w: torch.nn.functional.embedding(x, w),
        *(i64(2, 3, high=4), tensor("f16", 4, 3)),
    ),
]
