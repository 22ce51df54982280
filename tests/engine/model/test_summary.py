from pathlib import Path

import numpy as np

from engine import RuntimeGraph
from tests.engine.models import make_graph

LINES = """
pnnx.Input  in  0 1 0 #0=(?,3)f32
nn.Linear   fc  1 1 0 1 bias=True in_features=3 out_features=2 @bias=(2)f32 @weight=(2,3)f32 #1=(?,2)f32
torch.chunk two 1 2 1 2 3 chunks=2 dim=1
pnnx.Output out 2 0 2 3
"""
WEIGHTS = {"fc.bias": np.zeros(2, np.float32), "fc.weight": np.zeros((2, 3), np.float32)}


def test_table_shows_names_types_shapes_and_parameters(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, LINES, WEIGHTS)
    assert str(graph).splitlines() == [
        "<RuntimeGraph 'model.param' Complete, 4 operators>",
        "   name  type         inputs      outputs     parameters",
        "0  in    pnnx.Input               0 (?,3)f32",
        "1  fc    nn.Linear    0 (?,3)f32  1 (?,2)f32  bias=True in_features=3 out_features=2 @bias=(2)f32 "
        "@weight=(2,3)f32",
        "2  two   torch.chunk  1 (?,2)f32  2, 3        chunks=2 dim=1",
        "3  out   pnnx.Output  2, 3",
    ]


def test_one_line_shows_how_far_the_graph_has_come(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, LINES, WEIGHTS, build=False)
    assert repr(graph) == str(graph) == "<RuntimeGraph 'model.param' NeedInit>"
    assert "<table>" not in graph._repr_html_()
    graph.init()
    assert repr(graph) == "<RuntimeGraph 'model.param' NeedBuild, 4 operators>"
    assert len(str(graph).splitlines()) == 6


def test_long_graphs_are_listed_whole_and_long_cells_cut(tmp_path: Path) -> None:
    name = "block." * 20 + "relu"
    chain = "\n".join(f"nn.ReLU {name}{place} 1 1 {place} {place + 1}" for place in range(150))
    graph = make_graph(tmp_path, f"pnnx.Input in 0 1 0\n{chain}\npnnx.Output out 1 0 150")
    lines = str(graph).splitlines()
    assert len(lines) == 154
    assert {line.index("nn.ReLU") for line in lines[3:-1]} == {47}
    assert all("…" in line for line in lines[3:-1])
    assert lines[12].startswith(" 10  ")


def test_what_a_file_says_does_nothing_to_a_terminal_or_a_page(tmp_path: Path) -> None:
    graph = make_graph(
        tmp_path,
        "pnnx.Input <script>alert(1)</script> 0 1 0 #0=(1)f32\nnn.ReLU a\x1b[31m&b 1 1 0 1\npnnx.Output out 1 0 1",
    )
    assert "\x1b" not in str(graph)
    assert r"a\x1b[31m&b" in str(graph)
    html = graph._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "a\\x1b[31m&amp;b" in html
    assert html.count("<tr>") == 4


def test_shipped_model_is_shown() -> None:
    graph = RuntimeGraph(Path(__file__).parents[3] / "models/digits/digits.pnnx.param")
    graph.init()
    assert "stem.conv" in str(graph)
