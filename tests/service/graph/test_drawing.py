from pathlib import Path
from typing import Any

from service.graph.drawing import draw_dot, draw_mermaid
from service.graph.view import describe_graph
from tests.engine.models import make_graph
from tests.service.models import PAIR

DOT = """\
digraph "pair" {
  rankdir=TB;
  node [shape=box, fontname="sans-serif"];
  "left" [label="pnnx.Input\\nleft"];
  "right" [label="pnnx.Input\\nright"];
  "sum" [label="pnnx.Expression\\nsum\\nadd(@0,@1)"];
  "relu" [label="nn.ReLU\\nrelu"];
  "first" [label="pnnx.Output\\nfirst"];
  "second" [label="pnnx.Output\\nsecond"];
  "left" -> "sum" [label="a (2)f32"];
  "right" -> "sum" [label="b (2)f32"];
  "sum" -> "relu" [label="s (2)f32"];
  "sum" -> "first" [label="s (2)f32"];
  "relu" -> "second" [label="t (2)f32"];
}
"""
MERMAID = """\
%% pair
flowchart TD
  n0["pnnx.Input<br/>left"]
  n1["pnnx.Input<br/>right"]
  n2["pnnx.Expression<br/>sum<br/>add#40;@0,@1#41;"]
  n3["nn.ReLU<br/>relu"]
  n4["pnnx.Output<br/>first"]
  n5["pnnx.Output<br/>second"]
  n0 -->|"a #40;2#41;f32"| n2
  n1 -->|"b #40;2#41;f32"| n2
  n2 -->|"s #40;2#41;f32"| n3
  n2 -->|"s #40;2#41;f32"| n4
  n3 -->|"t #40;2#41;f32"| n5
"""


def hostile(name: str) -> dict[str, Any]:
    node = {"name": name, "type": "t", "parameters": {}}
    operand = {"name": name, "shape": None, "dtype": None, "producer": name, "consumers": [name]}
    return {"nodes": [node], "operands": [operand]}


def test_dot(tmp_path: Path) -> None:
    assert draw_dot(describe_graph(make_graph(tmp_path, PAIR)), "pair") == DOT


def test_mermaid(tmp_path: Path) -> None:
    assert draw_mermaid(describe_graph(make_graph(tmp_path, PAIR)), "pair") == MERMAID


def test_dynamic_dimensions_are_question_marks() -> None:
    description = hostile("a")
    description["operands"][0] |= {"shape": [None, 3], "dtype": "f32"}
    assert '[label="a (?,3)f32"]' in draw_dot(description, "t")


def test_dot_escapes_what_would_end_a_string() -> None:
    drawn = draw_dot(hostile('a"\\\n\r];b'), "t")
    quoted = '"a\\"\\\\\\n\\r];b"'
    assert f'  {quoted} [label="t\\n{quoted[1:]}];' in drawn
    assert f"  {quoted} -> {quoted} [label={quoted}];" in drawn


def test_mermaid_escapes_what_has_a_meaning() -> None:
    drawn = draw_mermaid(hostile('"]; click <b>#`|\n'), "t")
    assert 'n0["t<br/>#34;#93;; click #60;b#62;#35;#96;#124;<br/>"]' in drawn
