"""Layers that work element by element and stand outside expressions."""

from tests.golden.case import LayerCase, boolean, f32, function, i64, tensor

CASES: list[LayerCase] = [
    function(
        "torch.clamp", "both", lambda torch, x: torch.clamp(x, -0.5, 0.75), f32(3, 4), also=((f32(2, 2),),)
    ),
    function("torch.clamp", "min", lambda torch, x: torch.clamp(x, min=0.1), f32(3, 4)),
    function("torch.clamp", "max", lambda torch, x: torch.clamp(x, max=0.1), tensor("f64", 3, 4)),
    function("torch.clamp", "crossing", lambda torch, x: torch.clamp(x, 1, -1), f32(3, 4)),
    function("torch.clamp", "ints", lambda torch, x: torch.clamp(x, 2, 5), i64(9)),
    function("torch.clamp", "ints_by_float", lambda torch, x: torch.clamp(x, 2.5, 5.5), i64(9)),
    function("torch.clamp", "half", lambda torch, x: x.clip(-1, 1), tensor("f16", 9)),
    function(
        "torch.clamp", "tensors", lambda torch, x, y, z: torch.clamp(x, y, z), f32(3, 4), f32(4), f32(3, 1)
    ),
    function("torch.clamp", "min_tensor", lambda torch, x, y: torch.clamp(x, min=y), f32(3, 4), f32(3, 4)),
    function("torch.clamp", "max_promoted", lambda torch, x, y: torch.clamp(x, max=y), i64(3, 4), f32(3, 4)),
    function(
        "torch.lgamma", "floats", lambda torch, x: torch.lgamma(x), f32(3, 9, low=-5, high=9), rtol=1e-4
    ),
    function("torch.lgamma", "double", lambda torch, x: torch.lgamma(x), tensor("f64", 9, low=0, high=40)),
    function("torch.lgamma", "ints", lambda torch, x: torch.lgamma(x), i64(9)),
    function("torch.positive", "plain", lambda torch, x: torch.positive(x), f32(3, 4), also=((f32(2, 1),),)),
    function(
        "torch.where",
        "tensors",
        lambda torch, c, x, y: torch.where(c, x, y),
        boolean(3, 4),
        f32(3, 4),
        f32(3, 4),
    ),
    function(
        "torch.where",
        "broadcast",
        lambda torch, c, x, y: torch.where(c, x, y),
        boolean(3, 1),
        f32(4),
        f32(2, 1, 4),
    ),
    function(
        "torch.where", "other_number", lambda torch, c, x: torch.where(c, x, 2.0), boolean(3, 4), f32(3, 4)
    ),
    function(
        "torch.where",
        "input_number",
        lambda torch, c, x: torch.where(c, 1, x),
        boolean(3, 4),
        tensor("f16", 3, 4),
    ),
    function(
        "torch.where", "float_and_ints", lambda torch, c, x: torch.where(c, 1.5, x), boolean(3, 4), i64(3, 4)
    ),
    function(
        "torch.where",
        "numbers",
        lambda torch, c: torch.where(c, 1, 2),
        boolean(3, 4),
        also=((boolean(2, 1),),),
    ),
    function("torch.where", "float_numbers", lambda torch, c: torch.where(c, 1.5, -2.0), boolean(3, 4)),
    function(
        "torch.where", "promoted", lambda torch, c, x, y: torch.where(c, x, y), boolean(4), i64(4), f32(4)
    ),
    function(
        "torch.where", "of_comparison", lambda torch, x: torch.where(x > 0, x, torch.zeros_like(x)), f32(3, 4)
    ),
    function(
        "Tensor.masked_fill", "number", lambda torch, x, m: x.masked_fill(m, 2), f32(3, 4), boolean(3, 4)
    ),
    function(
        "Tensor.masked_fill",
        "broadcast",
        lambda torch, x, m: x.masked_fill(m, -1e30),
        f32(2, 3, 4),
        boolean(3, 1),
    ),
    function(
        "Tensor.masked_fill",
        "infinity",
        lambda torch, x, m: x.masked_fill(m, float("-inf")),
        f32(3, 4),
        boolean(4),
    ),
    function("Tensor.masked_fill", "ints", lambda torch, x, m: x.masked_fill(m, 7), i64(3, 4), boolean(3, 4)),
    function(
        "Tensor.masked_fill",
        "tensor",
        lambda torch, x, m, v: x.masked_fill(m, v[0]),
        f32(3, 4),
        boolean(4),
        f32(2),
    ),
    function("torch.complex", "single", lambda torch, x, y: torch.complex(x, y), f32(3, 4), f32(3, 4)),
    function(
        "torch.complex",
        "double",
        lambda torch, x, y: torch.complex(x, y),
        tensor("f64", 3, 1),
        tensor("f64", 4),
    ),
    function(
        "torch.real",
        "plain",
        lambda torch, x: torch.real(x),
        tensor("c64", 3, 4),
        also=((tensor("c64", 2, 1),),),
    ),
    function("torch.real", "double", lambda torch, x: x.real + 1, tensor("c128", 3)),
    function("torch.imag", "plain", lambda torch, x: torch.imag(x), tensor("c64", 3, 4)),
    function("torch.view_as_real", "plain", lambda torch, x: torch.view_as_real(x), tensor("c64", 3, 4)),
    function(
        "torch.view_as_real", "transposed", lambda torch, x: torch.view_as_real(x.t()), tensor("c128", 3, 4)
    ),
    function("torch.view_as_complex", "plain", lambda torch, x: torch.view_as_complex(x), f32(3, 4, 2)),
    function(
        "torch.view_as_complex", "double", lambda torch, x: torch.view_as_complex(x), tensor("f64", 3, 2)
    ),
]
