from pathlib import Path

import pytest

from engine import GraphError
from engine.model.topology import breadth_first_order, link
from engine.pnnx import Graph, Operator
from tests.engine.models import make_graph


def order_of(*operators: Operator) -> list[str]:
    linked, _ = link(Graph(list(operators)))
    return [operator.name for operator in breadth_first_order(linked)]


def op(name: str, inputs: str = "", outputs: str = "") -> Operator:
    return Operator("test.Any", name, inputs.split(), outputs.split())


def test_course_example_runs_in_the_course_order() -> None:
    operators = [
        op("op1", "", "a"),
        op("op2", "a", "b"),
        op("op3", "a", "c"),
        op("op4", "a", "d"),
        op("op5", "c", "e"),
        op("op6", "d", "f"),
        op("op7", "e f", "g"),
    ]
    assert order_of(*operators) == ["op1", "op2", "op3", "op4", "op5", "op6", "op7"]


def test_breadth_comes_before_depth() -> None:
    deep = [
        op("in", "", "a"),
        op("l1", "a", "b"),
        op("l2", "b", "c"),
        op("r1", "a", "d"),
        op("j", "c d", "e"),
    ]
    assert order_of(*deep) == ["in", "l1", "r1", "l2", "j"]


def test_file_order_need_not_be_topological() -> None:
    assert order_of(op("last", "b", "c"), op("mid", "a", "b"), op("in", "", "a")) == ["in", "mid", "last"]


def test_operand_taken_twice_is_awaited_twice() -> None:
    assert order_of(op("in", "", "a"), op("square", "a a", "b"), op("next", "b a", "c")) == [
        "in",
        "square",
        "next",
    ]


def test_several_sources_keep_file_order() -> None:
    assert order_of(op("in0", "", "a"), op("w", "", "b"), op("in1", "", "c"), op("j", "c b a", "d"))[:3] == [
        "in0",
        "w",
        "in1",
    ]


def test_cycle_is_named() -> None:
    with pytest.raises(GraphError, match="'x' -> 'y' -> 'x'|'y' -> 'x' -> 'y'"):
        order_of(op("in", "", "a"), op("x", "a c", "b"), op("y", "b", "c"), op("after", "c", "d"))


def test_long_cycle_is_named_in_part() -> None:
    ring = [op(f"r{i}", f"v{i - 1 if i else 29_999}", f"v{i}") for i in range(30_000)]
    with pytest.raises(GraphError) as caught:
        order_of(*ring)
    assert str(caught.value).startswith("cycle: 'r0' -> 'r1' -> ")
    assert "… 29989 more …" in str(caught.value)
    assert str(caught.value).endswith(" -> 'r29999' -> 'r0'")


def test_operator_that_feeds_itself_is_a_cycle() -> None:
    with pytest.raises(GraphError, match="'x' -> 'x'"):
        order_of(op("x", "a", "a"))


def test_operand_without_producer_is_named() -> None:
    with pytest.raises(GraphError, match="'ghost', an input of 'x', has no producer"):
        order_of(op("x", "ghost", "a"))


def test_operand_with_two_producers_is_named() -> None:
    with pytest.raises(GraphError, match="'a' has two producers: 'x' and 'y'"):
        order_of(op("x", "", "a"), op("y", "", "a"))


def test_long_chain_needs_no_recursion() -> None:
    chain = [op("in", "", "v0"), *(op(f"n{i}", f"v{i}", f"v{i + 1}") for i in range(20_000))]
    assert len(order_of(*chain)) == 20_001


def test_cycle_in_a_file(tmp_path: Path) -> None:
    lines = """
        pnnx.Input in 0 1 a
        pnnx.Expression x 2 1 a c b expr=add(@0,@1)
        pnnx.Expression y 1 1 b c expr=neg(@0)
        pnnx.Output out 1 0 b
    """
    with pytest.raises(GraphError, match="cycle"):
        make_graph(tmp_path, lines)
