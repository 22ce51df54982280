"""Files that contradict themselves: the operator that causes it is named, at build."""

from pathlib import Path

import numpy as np
import pytest

from engine import BuildError, RuntimeGraph
from engine.check import inspect
from tests.engine.models import make_graph, write_model

RESHAPE = "Tensor.reshape reshape_63 1 1 a x shape=(-1,120) $input=a #x={declared}f32"
TRIPPED = """
    pnnx.Input in 0 1 a #a={given}f32
    {reshape}
    Tensor.permute trips 1 1 x y dims=(0,2,1) $input=x
    pnnx.Output out 1 0 y"""


def tripped(given: str, declared: str) -> str:
    return TRIPPED.format(given=given, reshape=RESHAPE.format(declared=declared))


@pytest.mark.parametrize(
    ("given", "declared", "gives"),
    [
        ("(2,120,3)", "(2,120,3)", r"\(6,120\)f32"),
        ("(?,120,?)", "(?,120,?)", r"\(\?,120\)f32"),
        ("(?,120,4)", "(?,120,4)", r"\(\?,120\)f32"),
    ],
)
def test_cause_is_named_not_what_trips_over_it(tmp_path: Path, given: str, declared: str, gives: str) -> None:
    message = rf"^Tensor.reshape reshape_63, operand 'x': .* give {gives}; expected .*does not run"
    with pytest.raises(BuildError, match=message):
        make_graph(tmp_path, tripped(given, declared))
    with pytest.raises(BuildError, match=message):
        inspect(RuntimeGraph(write_model(tmp_path, tripped(given, declared))))


def test_first_cause_in_execution_order_is_named(tmp_path: Path) -> None:
    lines = """
        pnnx.Input in 0 1 a #a=(2,120,3)f32
        pnnx.Output out 1 0 z
        Tensor.permute trips 1 1 y z dims=(0,2,1) $input=y
        F.relu second 1 1 x y $input=x #y=(9,9)f32
        Tensor.reshape first 1 1 a x shape=(-1,120) $input=a #x=(2,120,3)f32"""
    with pytest.raises(BuildError, match="^Tensor.reshape first, operand 'x'"):
        make_graph(tmp_path, lines)


def test_contradiction_that_does_no_harm_is_a_warning(tmp_path: Path) -> None:
    lines = f"""
        pnnx.Input in 0 1 a #a=(?,120,?)f32
        {RESHAPE.format(declared="(?,120,?)")}
        F.relu relu 1 1 x y $input=x
        pnnx.Output out 1 0 y"""
    graph = make_graph(tmp_path, lines)
    assert len(graph.warnings) == 1
    assert graph.warnings[0].startswith("Tensor.reshape reshape_63, operand 'x'")
    assert graph.forward([np.ones((2, 120, 3), np.float32)])[0].shape == (6, 120)
    printed = "\n".join(inspect(RuntimeGraph(write_model(tmp_path, lines))).lines())
    assert "warning         Tensor.reshape reshape_63" in printed


def test_other_kind_of_numbers_is_refused_even_if_it_runs(tmp_path: Path) -> None:
    """torch.div(a, b, rounding_mode="floor") of integers leaves the exporter as a plain division."""
    lines = """
        pnnx.Input in_0 0 1 a #a=(3,4)i64
        pnnx.Input in_1 0 1 b #b=(3,4)i64
        pnnx.Expression quotient 2 1 a b x expr=div(@0,@1) #x=(3,4)i64
        pnnx.Output out 1 0 x"""
    with pytest.raises(
        BuildError, match=r"pnnx.Expression quotient, operand 'x': .*\(3,4\)f32; expected \(3,4\)i64"
    ):
        make_graph(tmp_path, lines)


@pytest.mark.parametrize(
    "line",
    [
        "Tensor.reshape r 1 1 a x shape=(-1,40) $input=a #x=(?,40)f32",
        "Tensor.reshape r 1 1 a x shape=(2,120,-1) $input=a #x=(?,120,?)f32",
        "F.relu r 1 1 a x $input=a",
        "F.relu r 1 1 a x $input=a #x=(?,120,?)null",
        "F.relu r 1 1 a x $input=a #x=(2,120,3)f32",
        "Tensor.permute r 1 1 a x dims=(2,1,0) $input=a #x=(?,120,?)f32",
    ],
)
def test_what_open_extents_may_be_is_no_contradiction(tmp_path: Path, line: str) -> None:
    graph = make_graph(tmp_path, f"pnnx.Input in 0 1 a #a=(?,120,?)f32\n{line}\npnnx.Output out 1 0 x")
    assert graph.warnings == ()
