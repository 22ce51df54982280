"""Linear layers."""

from tests.golden.case import LayerCase, f32, function, module, tensor

CASES: list[LayerCase] = [
    module("nn.Linear", "bias", lambda nn: nn.Linear(5, 3), f32(2, 5), also=((f32(7, 5),),)),
    module("nn.Linear", "no_bias", lambda nn: nn.Linear(4, 6, bias=False), f32(3, 4)),
    module("nn.Linear", "vector", lambda nn: nn.Linear(7, 2), f32(7)),
    module("nn.Linear", "rank3", lambda nn: nn.Linear(5, 4), f32(2, 3, 5)),
    module("nn.Linear", "rank4", lambda nn: nn.Linear(3, 1), f32(2, 3, 4, 3), also=((f32(1, 5, 2, 3),),)),
    module(
        "nn.Linear", "fp16_weights", lambda nn: nn.Linear(5, 3), f32(2, 5), fp16=True, rtol=1e-2, atol=1e-2
    ),
    module(
        "nn.Linear", "f64", lambda nn: nn.Linear(5, 3).double(), tensor("f64", 2, 5), rtol=1e-12, atol=1e-12
    ),
    function("F.linear", "plain", lambda torch, x, w: torch.nn.functional.linear(x, w), f32(3, 5), f32(2, 5)),
    function(
        "F.linear",
        "bias",
        lambda torch, x, w, b: torch.nn.functional.linear(x, w, b),
        *(f32(2, 4, 5), f32(3, 5), f32(3)),
    ),
    function(
        "F.linear",
        "transposed_input",
        lambda torch, x, w, b: torch.nn.functional.linear(x.permute(2, 0, 1), w, b),
        *(f32(4, 5, 3), f32(3, 5), f32(3)),
    ),
    function(
        "F.linear",
        "vector_weight",
        lambda torch, x, w: torch.nn.functional.linear(x, w),
        f32(2, 3, 5),
        f32(5),
    ),
    function(
        "F.linear",
        "f64",
        lambda torch, x, w: torch.nn.functional.linear(x, w),
        *(tensor("f64", 3, 5), tensor("f64", 2, 5)),
    ),
]
