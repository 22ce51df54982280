from pathlib import Path

import pytest

from engine.errors import ParamError
from engine.pnnx import Attribute, Graph, Operator, ParameterValue, TensorType
from engine.pnnx.param_writer import format_param

PATH = Path("model.param")


def one(operator: Operator, **operands: TensorType | None) -> Graph:
    return Graph([operator], dict(operands))


def test_the_layout_is_that_of_the_exporter() -> None:
    operator = Operator(
        "nn.Linear",
        "fc",
        [],
        ["y"],
        params={"bias": True, "eps": 1e-5},
        attrs={"weight": Attribute((2,), "i8", b"\1\2")},
    )
    reader = Operator("pnnx.Output", "out", ["y", "y"], [], input_names={"a": "y", "b": "y"})
    text = format_param(Graph([operator, reader], {"y": TensorType((1, None), "f32")}), PATH)
    assert text == (
        "7767517\n2 1\n"
        "nn.Linear                fc                       0 1 y bias=True eps=1e-05 @weight=(2)i8 #y=(1,?)f32\n"
        "pnnx.Output              out                      2 0 y y $a=y $b=y #y=(1,?)f32 #y=(1,?)f32\n"
    )


def test_a_spelling_is_kept_while_it_means_the_value() -> None:
    operator = Operator("t", "n", params={"eps": 1e-5}, spellings={"eps": "1.000000e-05", "gone": "x"})
    assert "eps=1.000000e-05" in format_param(one(operator), PATH)
    operator.params["eps"] = 2e-5
    assert "eps=2e-05" in format_param(one(operator), PATH)


@pytest.mark.parametrize(
    ("operator", "problem"),
    [
        (Operator("", "n"), "empty"),
        (Operator("t", ""), "empty"),
        (Operator("t t", "n"), "white space in 't t'"),
        (Operator("t", "n\n"), "white space"),
        (Operator("#t", "n"), "would begin a comment"),
        (Operator("t", "n\ud800"), "surrogates not allowed"),
        (Operator("t", "n", params={"a=b": 1}), "parameter name 'a=b'"),
        (Operator("t", "n", params={"@a": 1}), "parameter name '@a'"),
        (Operator("t", "n", params={"#a": 1}), "parameter name '#a'"),
        (Operator("t", "n", params={"$a": 1}), r"parameter name '\$a'"),
        (Operator("t", "n", params={"a": "x y"}), "white space in 'a=x y'"),
        (Operator("t", "n", params={"a": "1"}), "'1'.* reads back as another value"),
        (Operator("t", "n", params={"a": ()}), "reads back as another value"),
        (Operator("t", "n", attrs={"a b": Attribute((), "i8", b"\0")}), "white space"),
        (Operator("t", "n", attrs={"a": Attribute((1,) * 65, "i8", b"\0")}), "65 dimensions"),
        (Operator("t", "n", input_names={"a": "x"}), "input name 'a' has a = or names 'x'"),
    ],
)
def test_what_the_format_cannot_express_is_refused(operator: Operator, problem: str) -> None:
    with pytest.raises(ParamError, match=f"model.param: operator .* cannot be written: .*{problem}"):
        format_param(one(operator), PATH)


@pytest.mark.parametrize(
    "tensor_type",
    [
        TensorType((1,), "f8"),
        TensorType((-1,), "f32"),
        TensorType((2,), "f32", ((0, "n"),)),
        TensorType((None,), "f32", ((0, "a,b"),)),
        TensorType((None,), "f32", ((0, "a=b"),)),
    ],
)
def test_an_impossible_operand_type_is_refused(tensor_type: TensorType) -> None:
    with pytest.raises(ParamError, match="cannot be written"):
        format_param(one(Operator("t", "n", [], ["x"]), x=tensor_type), PATH)


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        (Graph([Operator("t", "n"), Operator("t", "n")]), "second operator named 'n'"),
        (
            Graph([Operator("t", "n", ["x"])], {"x": None}),
            "'n' reads operand 'x', which no operator produces",
        ),
        (Graph([Operator("t", "n", [], ["x"])]), "operand 'x' is missing from the graph's operands"),
        (Graph([], {"x": None}), "operand 'x' belongs to no operator"),
    ],
)
def test_a_graph_that_does_not_hang_together_is_refused(graph: Graph, problem: str) -> None:
    with pytest.raises(ParamError, match=problem):
        format_param(graph, PATH)


@pytest.mark.parametrize("value", [None, True, 3, 2.5, 1j, "s", (1, 2), (1.5,), (1j,), ("a", "b")])
def test_every_kind_of_parameter_is_written(value: ParameterValue) -> None:
    assert " key=" in format_param(one(Operator("t", "n", params={"key": value})), PATH)
