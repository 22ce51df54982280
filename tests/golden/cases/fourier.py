"""The eighteen layers of torch.fft."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, function, i64, tensor

TAKES_REAL = ("rfft", "ihfft")


def over_one(name: str) -> list[LayerCase]:
    """Make the cases of a transform over one dimension."""

    def call(*arguments: Any, **options: Any) -> Any:
        return lambda torch, x: getattr(torch.fft, name)(x, *arguments, **options)

    kind = f"torch.fft.{name}"
    complex_input = f32(3, 5) if name in TAKES_REAL else tensor("c64", 3, 5)
    return [
        function(kind, "plain", call(), f32(2, 6), also=((f32(3, 5),),)),
        function(kind, "complex", call(), complex_input),
        function(kind, "longer", call(9, 0), complex_input),
        function(kind, "shorter", call(4, -1, "ortho"), complex_input),
        function(kind, "forward", call(norm="forward"), complex_input),
        function(kind, "backward", call(norm="backward"), tensor("f64", 7)),
        function(kind, "ints", call(dim=1), i64(2, 4)),
    ]


def over_many(name: str, dims: Any) -> list[LayerCase]:
    """Make the cases of a transform over two dimensions, or any number."""

    def call(*arguments: Any, **options: Any) -> Any:
        return lambda torch, x: getattr(torch.fft, name)(x, *arguments, **options)

    kind = f"torch.fft.{name}"
    base: Input = f32(2, 3, 4) if name[:-1] in TAKES_REAL else tensor("c64", 2, 3, 4)
    return [
        function(kind, "plain", call(), f32(2, 3, 4), also=((f32(1, 5, 6),),)),
        function(kind, "complex", call(), base),
        function(kind, "sizes", call((4, 5)), base),
        function(kind, "dims", call(None, dims, "ortho"), base),
        function(kind, "sizes_dims", call((2, 5), dims, norm="forward"), base),
    ]


ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")

CASES: list[LayerCase] = [
    *(case for name in ONE for case in over_one(name)),
    *(case for name in ONE for case in over_many(f"{name}2", (0, -1))),
    *(case for name in ONE for case in over_many(f"{name}n", (2, 0))),
    function("torch.fft.fftn", "one_size", lambda torch, x: torch.fft.fftn(x, (3,)), f32(2, 4)),
    function("torch.fft.rfftn", "one_dim", lambda torch, x: torch.fft.rfftn(x, dim=(1,)), f32(2, 5, 2)),
    function(
        "torch.fft.irfftn", "kept_size", lambda torch, x: torch.fft.irfftn(x, (-1, 7)), tensor("c128", 2, 4)
    ),
]
