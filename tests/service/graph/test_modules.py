"""Modules as names of operators show them, and graphs with some of them closed."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from service.graph.grouping import group
from service.graph.layout_view import describe_layout
from service.graph.modules import modules_of, open_modules, operator_counts
from service.graph.wiring import Wiring

BLOCKS = [
    ("in", "pnnx.Input"),
    ("stem", "nn.Conv2d"),
    ("layer1.0.conv", "nn.Conv2d"),
    ("F.relu_3", "F.relu"),
    ("layer1.1.conv", "nn.Conv2d"),
    ("pnnx_expr_0", "pnnx.Expression"),
    ("layer2.conv", "nn.Conv2d"),
    ("torch.flatten_0", "torch.flatten"),
    ("fc", "nn.Linear"),
    ("out", "pnnx.Output"),
]
"""A small network of two layers, the first of two blocks; the expression adds what the first block gave."""


def chain(operators: Sequence[tuple[str, str]], *more: tuple[int, int]) -> Wiring:
    edges = [*((place, place + 1) for place in range(len(operators) - 1)), *more]
    return Wiring(
        [name for name, _ in operators],
        [kind for _, kind in operators],
        [(producer, consumer, str(producer)) for producer, consumer in edges],
    )


def many(count: int, name: str = "net.layer{0}.{1}.conv{2}") -> Wiring:
    return chain(
        [(name.format(place // 40, place // 4 % 10, place % 4), "nn.Conv2d") for place in range(count)]
    )


def ids(drawn: dict[str, Any]) -> list[str]:
    return [node["id"] for node in drawn["nodes"]]


def test_functions_belong_where_the_last_result_that_they_take_was_made() -> None:
    assert modules_of(chain(BLOCKS, (3, 5))) == [
        *("", "", "layer1.0", "layer1.0", "layer1.1", "layer1.1", "layer2", "layer2", "", "")
    ]


def test_layers_that_the_exporter_renamed_belong_to_their_neighbours() -> None:
    operators = [
        *(("in", "pnnx.Input"), ("convbn2d_0", "nn.Conv2d"), ("stem.2", "nn.ReLU"), ("pool", "nn.MaxPool2d")),
        *(("convbn2d_1", "nn.Conv2d"), ("convbn2d_2", "nn.Conv2d"), ("body.0.2", "nn.ReLU")),
        *(("pnnx_unique_0", "nn.Conv2d"), ("pnnx_expr_0", "pnnx.Expression"), ("body.1.relu", "nn.ReLU")),
        *(("own", "nn.Conv2d"), ("out", "pnnx.Output")),
    ]
    assert modules_of(chain(operators)) == [
        *("", "stem", "stem", "", "body.0", "body.0", "body.0", "body.0", "body.0", "body.1", "", "")
    ]


def test_modules_count_what_is_in_the_modules_in_them() -> None:
    assert operator_counts(modules_of(chain(BLOCKS))) == {
        "layer1": 4,
        "layer1.0": 2,
        "layer1.1": 2,
        "layer2": 2,
    }


def test_small_graphs_are_open_and_can_be_closed() -> None:
    wiring = chain(BLOCKS, (3, 5))
    assert ids(describe_layout(wiring)) == wiring.names
    closed = describe_layout(wiring, "all")
    assert ids(closed) == ["in", "stem", "module layer1", "module layer2", "fc", "out"]
    assert closed["nodes"][2]["operators"] == wiring.names[2:6]
    assert [(edge["source"], edge["target"]) for edge in closed["edges"]] == [
        ("in", "stem"),
        ("stem", "module layer1"),
        ("module layer1", "module layer2"),
        ("module layer2", "fc"),
        ("fc", "out"),
    ]


def test_modules_open_and_close_one_by_one() -> None:
    wiring = chain(BLOCKS, (3, 5))
    opened = describe_layout(wiring, "all", frozenset({"layer1", "no.such"}))
    assert ids(opened)[2:5] == ["module layer1.0", "module layer1.1", "module layer2"]
    assert opened["modules"][0] == {"name": "layer1", "parent": "", "operator_count": 4, "open": True}
    assert opened["modules"][1] == {
        "name": "layer1.0",
        "parent": "layer1",
        "operator_count": 2,
        "open": False,
    }
    closed = describe_layout(wiring, "none", frozenset(), frozenset({"layer2"}))
    assert [name for name in ids(closed) if name.startswith("module")] == ["module layer2"]


def test_a_closed_module_of_one_operator_is_that_operator() -> None:
    wiring = chain([("in", "pnnx.Input"), ("head.fc", "nn.Linear"), ("out", "pnnx.Output")])
    drawn = describe_layout(wiring, "all")
    assert [(node["id"], node["kind"], node["module"]) for node in drawn["nodes"]] == [
        ("in", "input", ""),
        ("head.fc", "operator", "head"),
        ("out", "output", ""),
    ]


@pytest.mark.parametrize(("count", "shown"), [(149, 149), (150, 38), (400, 100), (800, 20), (5000, 1)])
def test_large_graphs_are_closed_as_far_as_it_takes_to_read_them(count: int, shown: int) -> None:
    wiring = many(count)
    modules = modules_of(wiring)
    assert len(set(group(wiring, modules, open_modules(modules, "auto", (), ())))) == shown


def test_a_module_that_would_lead_to_itself_is_drawn_as_several_nodes() -> None:
    operators = [("a.x", "nn.Conv2d"), ("b.x", "nn.Conv2d"), ("a.y", "nn.Conv2d"), ("b.y", "nn.Conv2d")]
    drawn = describe_layout(chain([*operators, ("a.z", "nn.ReLU")]), "all")
    assert ids(drawn) == ["a.x", "b.x", "a.y", "b.y", "a.z"]
    pairs = [(name + part, kind) for name, kind in operators for part in "12"]
    drawn = describe_layout(chain(pairs), "all")
    assert ids(drawn) == ["module a", "module b 2", "module a 3", "module b 4"]


@pytest.mark.parametrize("seed", range(20))
def test_drawings_of_random_graphs_hold_every_operator_once_without_overlaps(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(2, 120)
    names = [".".join([*chance.choices("abc", k=chance.randrange(4)), f"op{n}"]) for n in range(count)]
    edges = {
        (chance.randrange(max(0, place - 30), place), place)
        for place in range(1, count)
        for _ in range(chance.randrange(1, 3))
    }
    wiring = Wiring(names, ["nn.ReLU"] * count, [(*edge, "x") for edge in edges])
    expanded = frozenset(chance.sample(["a", "b", "a.b", "c.a", "c"], 2))
    drawn = describe_layout(wiring, chance.choice(["all", "none", "auto"]), expanded)
    assert sorted(name for node in drawn["nodes"] for name in node["operators"]) == sorted(names)
    assert len(set(ids(drawn))) == len(drawn["nodes"])
    check_geometry(drawn)
    node_of = {name: node["id"] for node in drawn["nodes"] for name in node["operators"]}
    assert {(edge["source"], edge["target"]) for edge in drawn["edges"]} == {
        (node_of[names[producer]], node_of[names[consumer]])
        for producer, consumer in edges
        if node_of[names[producer]] != node_of[names[consumer]]
    }


@pytest.mark.parametrize("count", [1500, 5000])
def test_large_drawings_have_no_overlaps(count: int) -> None:
    wiring = many(count)
    wiring.edges.extend((place, place + 3, "skip") for place in range(0, count - 3, 4))
    wiring.edges.extend((0, place, "mask") for place in range(2, count, 7))
    drawn = describe_layout(wiring, "none")
    assert len(drawn["nodes"]) == count
    check_geometry(drawn)
    assert any(edge["stub"] for edge in drawn["edges"])


def check_geometry(drawn: dict[str, Any]) -> None:
    """Check that no two nodes overlap, that all lie on the sheet, and that every line runs down from side to side."""
    rows: dict[int, list[Any]] = {}
    nodes = {node["id"]: node for node in drawn["nodes"]}
    for node in drawn["nodes"]:
        rows.setdefault(node["rank"], []).append(node)
        assert node["x"] >= 0
        assert node["x"] + node["width"] <= drawn["width"]
        assert node["y"] + node["height"] <= drawn["height"]
    bottom = 0.0
    for _, row in sorted(rows.items()):
        row.sort(key=lambda node: node["x"])
        for left, right in pairwise(row):
            assert left["x"] + left["width"] <= right["x"]
        assert min(node["y"] for node in row) >= bottom
        bottom = max(node["y"] + node["height"] for node in row)
    for edge in drawn["edges"]:
        source, target = nodes[edge["source"]], nodes[edge["target"]]
        heights = [y for _, y in edge["points"]]
        assert heights == sorted(heights)
        assert heights[0] == pytest.approx(source["y"] + source["height"], abs=0.2)
        assert heights[-1] == pytest.approx(target["y"], abs=0.2)
        assert heights[0] < heights[-1]
