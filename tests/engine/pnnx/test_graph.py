"""Operators are found, inserted and removed; what is written then still hangs together and runs."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph
from engine.errors import GraphError
from engine.pnnx import Graph, Operator, TensorType, read, write
from tests.engine.models import write_model

LINES = """
pnnx.Input      in   0 1 0 #0=(2,3)f32
pnnx.Expression neg  1 1 0 1 expr=neg(@0)
pnnx.Expression sum  2 1 0 1 2 expr=add(@0,mul(@1,3))
torch.chunk     half 1 2 2 3 4 chunks=2 dim=0 $input=2
pnnx.Expression diff 2 1 3 4 5 expr=sub(@0,@1)
pnnx.Output     out  1 0 5
"""
"""(x - 3x) of the first row, less that of the second."""
X = np.array([[1, -2, 3], [5, 8, -13]], np.float32)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    param = write_model(tmp_path, LINES)
    return read(param, param.with_suffix(".bin"))


def run(graph: Graph, folder: Path) -> list[list[float]]:
    write(graph, folder / "changed.param", folder / "changed.bin")
    built = RuntimeGraph(folder / "changed.param", backend="numpy")
    built.build()
    rows: list[list[float]] = built(X)[0].tolist()
    return rows


def names(graph: Graph) -> list[str]:
    return [operator.name for operator in graph.operators]


def relu() -> Operator:
    return Operator("nn.ReLU", "relu")


def test_operators_are_found_by_name_and_by_operand(graph: Graph) -> None:
    assert graph.get_operator("sum").inputs == ["0", "1"]
    assert [operator.name for operator in graph.get_consumers("0")] == ["neg", "sum"]
    assert graph.get_consumers("5")[0].type == "pnnx.Output"
    with pytest.raises(GraphError, match=r"^operator 'haf': is not in the graph; expected 'half'$"):
        graph.get_operator("haf")


def test_all_that_took_an_output_take_what_is_put_behind_it(graph: Graph, tmp_path: Path) -> None:
    x = np.maximum(X, 0)
    kind = TensorType((2, 3), "f32")
    added = graph.insert_operator_after("in", relu(), type=kind)
    assert (added.inputs, added.outputs) == (["0"], ["6"])
    assert graph.operands["6"] == kind
    assert names(graph) == ["in", "relu", "neg", "sum", "half", "diff", "out"]
    assert run(graph, tmp_path) == (-2 * x[:1] + 2 * x[1:]).tolist()


def test_only_the_other_takes_what_is_put_in_front_of_it(graph: Graph, tmp_path: Path) -> None:
    added = graph.insert_operator_before("neg", relu())
    assert (added.inputs, added.outputs) == (["0"], ["6"])
    assert names(graph)[:3] == ["in", "relu", "neg"]
    y = X - 3 * np.maximum(X, 0)
    assert run(graph, tmp_path) == (y[:1] - y[1:]).tolist()


def test_operand_is_named_where_there_are_several(graph: Graph, tmp_path: Path) -> None:
    for insert, what in ((graph.insert_operator_before, "sum"), (graph.insert_operator_after, "half")):
        before = deepcopy(graph)
        with pytest.raises(GraphError, match=rf"operator '{what}': has 2 .*; expected operand to be one of "):
            insert(what, relu())
        with pytest.raises(GraphError, match=rf"operator '{what}': has no .* '7'; expected"):
            insert(what, relu(), operand="7")
        assert graph == before
    graph.insert_operator_before("sum", relu(), operand="1")
    graph.insert_operator_after("half", Operator("nn.ReLU", "other"), operand="4")
    y = X + 3 * np.maximum(-X, 0)
    assert run(graph, tmp_path) == (y[:1] - np.maximum(y[1:], 0)).tolist()


def test_named_inputs_follow(graph: Graph, tmp_path: Path) -> None:
    graph.insert_operator_before("half", relu())
    assert graph.get_operator("half").input_names == {"input": "6"}
    y = np.maximum(X - 3 * X, 0)
    assert run(graph, tmp_path) == (y[:1] - y[1:]).tolist()


def test_operator_that_names_its_operands_is_only_placed(graph: Graph, tmp_path: Path) -> None:
    before = run(graph, tmp_path)
    aside = Operator("nn.ReLU", "aside", ["1"], ["aside_out"])
    graph.insert_operator_after("neg", aside)
    assert graph.operands["aside_out"] is None
    assert graph.get_operator("sum").inputs == ["0", "1"]
    assert run(graph, tmp_path) == before


def test_faults_leave_the_graph_as_it_was(graph: Graph) -> None:
    before = deepcopy(graph)
    with pytest.raises(GraphError, match="operator 'neg': the graph has one of that name"):
        graph.insert_operator_after("in", Operator("nn.ReLU", "neg"))
    with pytest.raises(GraphError, match="operator 'new': operand '2' has a producer already"):
        graph.insert_operator_after("in", Operator("nn.ReLU", "new", ["0"], ["2"]))
    with pytest.raises(
        GraphError, match=r"operator 'out': has 0 outputs; expected operand to be one of none"
    ):
        graph.insert_operator_after("out", relu())
    with pytest.raises(
        GraphError, match=r"has 2 inputs and 1 outputs, and 'half' takes '2'; expected one of each"
    ):
        graph.remove_operator("sum")
    assert graph == before


def test_what_took_a_removed_operators_output_takes_its_input(graph: Graph, tmp_path: Path) -> None:
    assert graph.remove_operator("neg").name == "neg"
    assert "1" not in graph.operands
    y = X + 3 * X
    assert run(graph, tmp_path) == (y[:1] - y[1:]).tolist()


def test_inserting_and_removing_gives_the_graph_back(graph: Graph) -> None:
    before = deepcopy(graph)
    for insert, name in ((graph.insert_operator_before, "neg"), (graph.insert_operator_after, "sum")):
        insert(name, relu())
        graph.remove_operator("relu")
    assert graph == before
