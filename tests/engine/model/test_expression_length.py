from pathlib import Path

import pytest

from engine import GraphError
from engine.model.limits import MAX_CHARACTERS
from tests.engine.models import make_graph


def model(count: int, length: int) -> str:
    """Return a graph of `count` expressions of `length` characters each."""
    text = f"[{'@0,' * (length // 3)}@0]"
    lines = [f"pnnx.Expression e{i} 1 1 x y{i} expr={text}" for i in range(count)]
    return "\n".join(["pnnx.Input in 0 1 x", *lines, "pnnx.Output out 1 0 y0"])


def test_expressions_that_are_too_long_together_are_refused_before_they_are_read(tmp_path: Path) -> None:
    with pytest.raises(GraphError) as caught:
        make_graph(tmp_path, model(30, MAX_CHARACTERS // 20), build=False).init()
    assert str(caught.value) == (
        "pnnx.Expression e0: its expressions have 13,111 characters, those of the graph 393,330; "
        "expected at most 262,144 in a graph"
    )


def test_text_that_is_no_expression_does_not_count(tmp_path: Path) -> None:
    lines = f"pnnx.Input in 0 1 x\nnn.ReLU r 1 1 x y note={'a' * 2 * MAX_CHARACTERS}\npnnx.Output out 1 0 y"
    make_graph(tmp_path, lines, build=False).init()
