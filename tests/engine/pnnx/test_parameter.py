import math

import pytest

from engine.pnnx.model import ParameterValue
from engine.pnnx.parameter import format_value, parse_value, same_value
from tests.cases import check_each

INF = math.inf


READ: list[tuple[str, ParameterValue]] = [
    ("None", None),
    ("()", None),
    ("[]", None),
    ("True", True),
    ("False", False),
    ("0", 0),
    ("-2147483648", -(2**31)),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775808", -(2**63)),
    ("1.0", 1.0),
    ("3.", 3.0),
    ("1e5", 1e5),
    ("1E5", 1e5),
    ("1.000000e-05", 1e-5),
    ("1.000000e-5", 1e-5),
    ("-3.40282347e38", -3.40282347e38),
    ("inf", INF),
    ("-inf", -INF),
    ("1.500000e+00+2.500000e+00j", 1.5 + 2.5j),
    ("1.500000e+00+-2.500000e+00j", 1.5 - 2.5j),
    ("1.5-2.5j", 1.5 - 2.5j),
    ("0+inf" + "j", complex(0, INF)),
    ("zeros", "zeros"),
    ("", ""),
    ("-", "-"),
    ("-x", "-x"),
    (".5", ".5"),
    ("+5", "+5"),
    ("0x10", "0x10"),
    ("1_000", "1_000"),
    ("٣", "٣"),
    ("3x3", "3x3"),
    ("2d", "2d"),
    ("j", "j"),
    ("1j", "1j"),
    ("torch.float", "torch.float"),
    ("ik,kj->ij", "ik,kj->ij"),
    ("a=b", "a=b"),
    ("%size", "%size"),
    ("(1,%size)", "(1,%size)"),
    ("(1,1)", (1, 1)),
    ("[1,-1]", (1, -1)),
    ("(7)", (7,)),
    ("(2.0,3.11)", (2.0, 3.11)),
    ("(2,3.5)", (2.0, 3.5)),
    ("(inf,-inf)", (INF, -INF)),
    ("(1+2j,3)", (1 + 2j, 3 + 0j)),
    ("(a,b)", ("a", "b")),
    ("(@0,1,2147483647)", ("@0", "1", "2147483647")),
    ("(True,False)", ("True", "False")),
    ("(None,1)", ("None", "1")),
    ("(,)", ("", "")),
    ("(1,2", "(1,2"),
    ("(1,2]", "(1,2]"),
    ("[[2,1],[0,1]]", "[[2,1],[0,1]]"),
    ("(1,(2))", "(1,(2))"),
]


def test_a_value_is_read() -> None:
    def check(case: tuple[str, ParameterValue]) -> None:
        text, expected = case
        assert same_value(parse_value("key", text), expected)

    check_each(READ, check)


def test_nan_is_read_as_a_value_that_containers_find_equal() -> None:
    assert {"a": (parse_value("a", "nan"),)} == {"a": (math.nan,)}
    assert {"a": parse_value("a", "(nan,1)")} == {"a": (math.nan, 1.0)}


@pytest.mark.parametrize(
    "text", ["2", "1.5", "None", "True", "()", "(1,2)", "[[2,1],[0,1]]", "inf", "add(@0,@1)"]
)
def test_an_expression_is_always_a_string(text: str) -> None:
    assert parse_value("expr", text) == text
    assert format_value("expr", text) == text


@pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1), "9" * 5000, f"(1,{2**63})"])
def test_an_integer_beyond_64_bits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not fit 64 bits; expected"):
        parse_value("key", text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (1, "1"),
        (1.0, "1.0"),
        (1e-5, "1e-05"),
        (-0.0, "-0.0"),
        (1e300, "1e+300"),
        (math.nan, "nan"),
        (1.5 - 2.5j, "1.5+-2.5j"),
        ("relu", "relu"),
        ((1,), "(1)"),
        ((1.0, INF), "(1.0,inf)"),
        ((1j, 2 + 0j), "(0.0+1.0j,2.0+0.0j)"),
        (("a", ""), "(a,)"),
    ],
)
def test_a_value_is_written_so_that_it_reads_back(value: ParameterValue, text: str) -> None:
    assert format_value("key", value) == text
    assert same_value(parse_value("key", text), value)


@pytest.mark.parametrize(
    "value",
    ["1", "1.5", "None", "True", "nan", "(a)", (), ("1", "2"), ("a,b",), ("[",), (1, 2.0), (True,), 2**63],
)
def test_a_value_that_would_read_back_as_another_is_refused(value: ParameterValue) -> None:
    with pytest.raises(ValueError, match="no spelling|does not fit"):
        format_value("key", value)


def test_a_string_that_looks_like_a_number_can_only_be_an_expression() -> None:
    with pytest.raises(ValueError, match="another value"):
        format_value("key", "2")
    assert format_value("expr", "2") == "2"
    with pytest.raises(ValueError, match="another value"):
        format_value("expr", 2)


def test_values_of_different_types_are_not_the_same() -> None:
    assert not same_value(True, 1)
    assert not same_value(1, 1.0)
    assert not same_value((1,), (1.0,))
    assert not same_value((1,), (1, 2))
    assert not same_value(0.0, -0.0)
    assert same_value(float("nan"), math.nan)
