"""Layers that compare, and that combine truth values and bits."""

from typing import Any

from tests.golden.case import LayerCase, boolean, f32, function, i64, tensor

COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")


def comparison(name: str) -> list[LayerCase]:
    """Make the cases of one comparison: of tensors, with numbers, over dtypes."""

    def compare(torch: Any, x: Any, y: Any) -> Any:
        return getattr(torch, name)(x, y)

    def with_first(torch: Any, x: Any, y: Any) -> Any:
        return getattr(torch, name)(x, y[0])

    def with_number(torch: Any, x: Any) -> Any:
        return getattr(torch, name)(x, 1)

    def with_float(torch: Any, x: Any) -> Any:
        return getattr(torch, name)(x, 0.5)

    kind = f"torch.{name}"
    return [
        function(
            kind, "tensors", compare, i64(3, 4, high=3), i64(3, 4, high=3), also=((i64(2, 5), i64(2, 5)),)
        ),
        function(kind, "broadcast", compare, f32(3, 1), f32(1, 4)),
        function(kind, "number", with_number, i64(3, 4, high=3), also=((i64(2, 2),),)),
        function(kind, "float_of_ints", with_float, tensor("i32", 7, high=2)),
        function(kind, "promoted", compare, i64(3, 4, high=3), tensor("f64", 4, low=0, high=3)),
        function(kind, "no_dimensions", with_first, f32(3), tensor("f64", 2)),
    ]


def logical(name: str) -> list[LayerCase]:
    """Make the cases of one logical function."""

    def combine(torch: Any, x: Any, y: Any) -> Any:
        return getattr(torch, name)(x, y)

    kind = f"torch.{name}"
    return [
        function(
            kind, "bools", combine, boolean(3, 4), boolean(3, 4), also=((boolean(5, 1), boolean(5, 1)),)
        ),
        function(kind, "numbers", combine, i64(3, 4, high=2), tensor("i32", 4, high=2)),
        function(kind, "complex", combine, tensor("c64", 3), boolean(3)),
    ]


def bitwise(name: str) -> list[LayerCase]:
    """Make the cases of one bitwise function that takes bools as well."""

    def combine(torch: Any, x: Any, y: Any) -> Any:
        return getattr(torch, name)(x, y)

    def with_number(torch: Any, x: Any) -> Any:
        return getattr(torch, name)(x, 5)

    kind = f"torch.{name}"
    return [
        function(kind, "ints", combine, i64(3, 4, low=-9), i64(4, low=-9), also=((i64(2, 3), i64(1)),)),
        function(kind, "bools", combine, boolean(3, 4), boolean(3, 4)),
        function(
            kind, "promoted", combine, tensor("u8", 5, low=0, high=200), tensor("i16", 5, low=-9, high=9)
        ),
        function(kind, "number", with_number, tensor("i8", 3, 4, low=-9, high=9)),
    ]


def shift(name: str) -> list[LayerCase]:
    """Make the cases of one shift."""

    def by_tensor(torch: Any, x: Any, y: Any) -> Any:
        return getattr(torch, name)(x, y)

    def of_number(torch: Any, x: Any) -> Any:
        return getattr(torch, name)(37, x)

    kind = f"torch.{name}"
    return [
        function(
            kind,
            "ints",
            by_tensor,
            i64(3, 4, low=-99, high=99),
            i64(4, high=6),
            also=((i64(2, 3), i64(1, high=6)),),
        ),
        function(kind, "number", of_number, tensor("i32", 5, low=0, high=5)),
        function(
            kind, "promoted", by_tensor, tensor("u8", 5, low=0, high=99), tensor("i32", 5, low=0, high=7)
        ),
    ]


CASES: list[LayerCase] = [
    *(case for name in COMPARISONS for case in comparison(name)),
    *(case for name in ("logical_and", "logical_or", "logical_xor") for case in logical(name)),
    *(case for name in ("bitwise_and", "bitwise_or", "bitwise_xor") for case in bitwise(name)),
    *(case for name in ("bitwise_left_shift", "bitwise_right_shift") for case in shift(name)),
    function("torch.eq", "complex", lambda torch, x: torch.eq(x, x.clone()), tensor("c64", 3)),
    function("torch.ne", "bool", lambda torch, x, y: torch.ne(x, y), boolean(9), boolean(9)),
    function(
        "torch.logical_not",
        "floats",
        lambda torch, x: torch.logical_not(x > 0),
        f32(3, 4),
        also=((f32(5, 2),),),
    ),
    function("torch.logical_not", "ints", lambda torch, x: torch.logical_not(x), i64(9, high=2)),
    function("torch.bitwise_not", "ints", lambda torch, x: torch.bitwise_not(x), i64(3, 4, low=-5)),
    function("torch.bitwise_not", "bools", lambda torch, x: ~x, boolean(3, 4), also=((boolean(2, 1),),)),
    function("torch.bitwise_not", "bytes", lambda torch, x: ~x, tensor("u8", 5, low=0, high=200)),
]
