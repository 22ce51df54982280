"""Which tensors of a graph share a scale: by how they are read, and how far their ranges reach."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from engine.calibration.candidates import Candidate
from engine.calibration.shared_scales import MAX_WIDENING, scaled_operands, shared_scales
from engine.quantization.scheme import Activation
from tests.engine.models import make_graph

CONV = (
    "kernel_size=(1,1) stride=(1,1) padding=(0,0) dilation=(1,1) groups=1 bias=False padding_mode=zeros "
    "in_channels={0} out_channels={1} @weight=({1},{0},1,1)f32"
)
POOL = "kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1) return_indices=False ceil_mode=False"


def groups_of(folder: Path, lines: str, widths: Mapping[str, float]) -> set[str]:
    """Return the groups, the names of each in order, of a model whose convolutions are all in int8."""
    shapes = {
        line.split()[1]: line.split("@weight=(")[1].split(")")[0]
        for line in lines.split("\n")
        if "@weight" in line
    }
    weights = {
        f"{name}.weight": np.ones([int(part) for part in shape.split(",")], np.float32)
        for name, shape in shapes.items()
    }
    graph = make_graph(folder, lines, weights)
    candidates = [
        Candidate(operator, Activation.STATIC)
        for operator in graph.execution_order
        if operator.type == "nn.Conv2d"
    ]
    floats = {operand.name for operator in graph.execution_order for operand in operator.outputs}
    operands = scaled_operands(candidates, floats)
    assert {operand.name for operand in operands} == widths.keys()
    return {"".join(sorted(names)) for names in shared_scales(operands, widths)}


def lines_of(*operators: str) -> str:
    return "\n".join(["pnnx.Input in 0 1 x #x=(1,4,8,8)f32", *operators])


ONCE = lines_of(
    f"nn.Conv2d one 1 1 x a {CONV.format(4, 8)}",
    f"nn.Conv2d two 1 1 x b {CONV.format(4, 8)}",
    "torch.cat cat 2 1 a b c dim=1",
    f"nn.Conv2d three 1 1 c y {CONV.format(16, 4)}",
    "pnnx.Output out 1 0 y",
)
AGAIN = lines_of(
    f"nn.Conv2d one 1 1 x a {CONV.format(4, 8)}",
    f"nn.Conv2d two 1 1 x b {CONV.format(4, 8)}",
    "torch.cat cat 2 1 a b c dim=1",
    f"nn.Conv2d three 1 1 c y {CONV.format(16, 4)}",
    f"nn.Conv2d four 1 1 a z {CONV.format(8, 4)}",
    "pnnx.Expression sum 2 1 y z s expr=add(@0,@1)",
    "pnnx.Output out 1 0 s",
)


def test_a_tensor_that_only_a_concatenation_reads_has_its_scale(tmp_path: Path) -> None:
    """It is rounded to that in any case."""
    assert groups_of(tmp_path, ONCE, {"x": 1, "a": 1, "b": 100, "c": 100}) == {"x", "abc"}


@pytest.mark.parametrize(
    ("width", "groups"),
    [(100 / MAX_WIDENING, {"x", "abc"}), (99 / MAX_WIDENING, {"x", "a", "bc"}), (0, {"x", "abc"})],
)
def test_a_tensor_that_others_read_shares_where_ranges_are_alike(
    tmp_path: Path, width: float, groups: set[str]
) -> None:
    """Zeros are zeros by any scale."""
    assert groups_of(tmp_path, AGAIN, {"x": 1, "a": width, "b": 100, "c": 100}) == groups


def test_an_output_of_the_graph_is_read_by_others(tmp_path: Path) -> None:
    lines = f"{ONCE}\npnnx.Output out2 1 0 a"
    assert groups_of(tmp_path, lines, {"x": 1, "a": 1, "b": 100, "c": 100}) == {"x", "a", "bc"}


def test_ranges_do_not_widen_from_one_concatenation_to_the_next(tmp_path: Path) -> None:
    """`b` is like `a` and like `e`, which are not alike: it shares with the one that is nearer."""
    lines = lines_of(
        f"nn.Conv2d one 1 1 x a {CONV.format(4, 8)}",
        f"nn.Conv2d two 1 1 a b {CONV.format(8, 8)}",
        "torch.cat cat 2 1 a b c dim=1",
        f"nn.Conv2d three 1 1 c d {CONV.format(16, 8)}",
        "torch.cat again 2 1 b d e dim=1",
        f"nn.Conv2d four 1 1 b f {CONV.format(8, 4)}",
        f"nn.Conv2d five 1 1 d g {CONV.format(8, 4)}",
        f"nn.Conv2d six 1 1 e h {CONV.format(16, 4)}",
        "pnnx.Expression sum 3 1 f g h s expr=add(add(@0,@1),@2)",
        "pnnx.Output out 1 0 s",
    )
    widths = {"x": 9, "a": 10, "b": 19, "c": 19, "d": 30, "e": 30}
    found = groups_of(tmp_path, lines, widths)
    assert found == {"x", "a", "bcde"}


def test_parts_and_maxima_share_where_ranges_are_alike(tmp_path: Path) -> None:
    lines = lines_of(
        f"nn.Conv2d one 1 1 x a {CONV.format(4, 8)}",
        f"nn.MaxPool2d pool 1 1 a b {POOL}",
        "torch.chunk chunk 1 2 b c d chunks=2 dim=1",
        f"nn.Conv2d two 1 1 c e {CONV.format(4, 4)}",
        f"nn.Conv2d three 1 1 d f {CONV.format(4, 4)}",
        "pnnx.Expression sum 2 1 e f s expr=add(@0,@1)",
        "pnnx.Output out 1 0 s",
    )
    widths = {"x": 1, "a": 10, "b": 10, "c": 10, "d": 1}
    assert groups_of(tmp_path, lines, widths) == {"x", "abc", "d"}
