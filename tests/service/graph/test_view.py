import math
from pathlib import Path

import numpy as np
import pytest

from service.graph.view import describe_graph, describe_ports, json_safe
from tests.engine.models import make_graph
from tests.service.models import PAIR

LINEAR = """
pnnx.Input  in     0 1 0 #0=(?,3)f32
nn.Linear   linear 1 1 0 1 bias=False in_features=3 out_features=2 @weight=(2,3)f32
nn.ReLU     relu   1 1 1 2 #2=(?,2)f32
pnnx.Output out    1 0 2
"""
WEIGHT = {"linear.weight": np.ones((2, 3), np.float32)}


def test_nodes_are_operators(tmp_path: Path) -> None:
    view = describe_graph(make_graph(tmp_path, LINEAR, WEIGHT))
    assert view["nodes"][1] == {
        "name": "linear",
        "type": "nn.Linear",
        "parameters": {"bias": False, "in_features": 3, "out_features": 2},
        "attributes": {"weight": {"shape": [2, 3], "dtype": "f32"}},
        "inputs": ["0"],
        "outputs": ["1"],
        "multiply_adds": 6,
        "precision": "f32",
    }
    assert [node["name"] for node in view["nodes"]] == ["in", "linear", "relu", "out"]


def test_operands_know_both_ends(tmp_path: Path) -> None:
    operands = describe_graph(make_graph(tmp_path, PAIR))["operands"]
    assert operands[2] == {
        "name": "s",
        "shape": [2],
        "dtype": "f32",
        "producer": "sum",
        "consumers": ["relu", "first"],
    }


def test_dynamic_dimensions_are_null_and_shapes_left_out_are_worked_out(tmp_path: Path) -> None:
    operands = describe_graph(make_graph(tmp_path, LINEAR, WEIGHT))["operands"]
    assert [operand["shape"] for operand in operands] == [[None, 3], [1, 2], [None, 2]]


def test_operand_of_no_type_has_the_shape_that_is_worked_out(tmp_path: Path) -> None:
    lines = LINEAR.replace("@weight=(2,3)f32", "@weight=(2,3)f32 #1=()null")
    operands = describe_graph(make_graph(tmp_path, lines, WEIGHT))["operands"]
    assert (operands[1]["shape"], operands[1]["dtype"]) == ([1, 2], "f32")


def test_unknown_shapes_are_null(tmp_path: Path) -> None:
    view = describe_graph(
        make_graph(tmp_path, "pnnx.Input in 0 1 0\nnn.ReLU relu 1 1 0 1\npnnx.Output out 1 0 1")
    )
    assert [(operand["shape"], operand["dtype"]) for operand in view["operands"]] == [(None, None)] * 2
    assert [node["multiply_adds"] for node in view["nodes"]] == [None] * 3


def test_order_is_that_of_execution(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, PAIR)
    assert describe_graph(graph)["execution_order"] == [operator.name for operator in graph.execution_order]


def test_ports_are_named_both_ways(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, LINEAR, WEIGHT)
    assert describe_ports(graph.inputs) == [
        {"name": "in", "operand": "0", "shape": [None, 3], "dtype": "f32"}
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("text", "text"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (1 - 2j, "1-2j"),
        ((1, 2), [1, 2]),
        ((1.0, math.inf), [1.0, "Infinity"]),
    ],
)
def test_parameters_are_safe_for_json(value: object, expected: object) -> None:
    assert json_safe(value) == expected
