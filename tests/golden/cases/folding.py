"""Unfolding windows to columns, and folding columns back."""

from tests.golden.case import LayerCase, f32, function, module, tensor

CASES: list[LayerCase] = [
    module("nn.Unfold", "plain", lambda nn: nn.Unfold(3), f32(2, 3, 5, 6), also=((f32(1, 2, 4, 7),),)),
    module(
        "nn.Unfold",
        "all",
        lambda nn: nn.Unfold((2, 3), dilation=(2, 1), padding=(1, 2), stride=(2, 3)),
        f32(2, 2, 7, 6),
    ),
    module("nn.Unfold", "unbatched", lambda nn: nn.Unfold(2, stride=2), f32(3, 4, 5)),
    function(
        "F.unfold",
        "plain",
        lambda t, x: t.nn.functional.unfold(x, (2, 3)),
        f32(1, 2, 4, 5),
        also=((f32(2, 3, 5, 4),),),
    ),
    function(
        "F.unfold",
        "all",
        lambda t, x: t.nn.functional.unfold(x, 3, dilation=2, padding=2, stride=(1, 2)),
        tensor("f64", 1, 2, 6, 5),
    ),
    module("nn.Fold", "plain", lambda nn: nn.Fold((4, 5), 2), f32(2, 8, 12), also=((f32(1, 4, 12),),)),
    module(
        "nn.Fold",
        "all",
        lambda nn: nn.Fold((7, 6), (2, 3), dilation=(2, 1), padding=(1, 2), stride=(2, 3)),
        f32(2, 12, 12),
    ),
    module("nn.Fold", "gaps", lambda nn: nn.Fold((7, 8), 2, stride=3), f32(1, 8, 6)),
    module("nn.Fold", "unbatched", lambda nn: nn.Fold(4, 2, stride=2), f32(12, 4)),
    function("F.fold", "plain", lambda t, x: t.nn.functional.fold(x, (4, 5), 2), f32(1, 8, 12)),
    function(
        "F.fold",
        "all",
        lambda t, x: t.nn.functional.fold(x, (6, 5), 3, dilation=(1, 2), padding=2, stride=(1, 2)),
        tensor("f64", 1, 18, 24),
    ),
]
