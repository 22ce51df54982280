"""Sampling at grids, and affine grids."""

from itertools import product
from typing import Any

from tests.golden.case import Input, LayerCase, f32, function, tensor

_CORNERS = {False: "edges", True: "corners"}


def _sample(mode: str, padding_mode: str, align_corners: bool, *inputs: Input, dims: int = 2) -> LayerCase:
    def call(torch: Any, input: Any, grid: Any) -> Any:
        return torch.nn.functional.grid_sample(input, grid, mode, padding_mode, align_corners)

    name = f"{dims}d_{mode}_{padding_mode}_{_CORNERS[align_corners]}"
    also = ((f32(1, *inputs[0].shape[1:]), f32(1, *inputs[1].shape[1:])),)
    return function("F.grid_sample", name, call, *inputs, also=also)


CASES: list[LayerCase] = [
    *(
        _sample(*options, f32(2, 3, 4, 5), f32(2, 4, 3, 2))
        for options in product(
            ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)
        )
    ),
    *(
        _sample(*options, f32(2, 2, 3, 4, 5), f32(2, 2, 3, 4, 3), dims=3)
        for options in product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (False, True))
    ),
    function(
        "F.grid_sample",
        "one_pixel",
        lambda t, x, g: t.nn.functional.grid_sample(x, g, "bilinear", "reflection", True),
        f32(1, 2, 1, 1),
        f32(1, 3, 3, 2),
    ),
    function(
        "F.grid_sample",
        "far_away",
        lambda t, x, g: t.nn.functional.grid_sample(x, g, "bilinear", "reflection", False),
        f32(1, 2, 3, 4),
        f32(1, 3, 3, 2, low=-50, high=50),
        rtol=1e-3,
        atol=1e-3,
    ),
    function(
        "F.grid_sample",
        "f64",
        lambda t, x, g: t.nn.functional.grid_sample(x, g, "bicubic", "zeros", False),
        tensor("f64", 1, 2, 3, 4),
        tensor("f64", 1, 3, 3, 2),
    ),
    *(
        function(
            "F.affine_grid",
            f"{len(size) - 2}d_{_CORNERS[corners]}",
            lambda t, theta, size=size, corners=corners: t.nn.functional.affine_grid(theta, size, corners),
            f32(size[0], len(size) - 2, len(size) - 1),
        )
        for size in ((2, 3, 4, 5), (2, 3, 2, 4, 3))
        for corners in (False, True)
    ),
    function(
        "F.affine_grid",
        "one_column",
        lambda t, theta: t.nn.functional.affine_grid(theta, (1, 1, 3, 1), False),
        tensor("f64", 1, 2, 3),
    ),
]
