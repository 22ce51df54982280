import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from service.commands.dispatch import run_command
from tests.service.models import PAIR, add_model

DIGITS = str(Path(__file__).parents[3] / "models/digits")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def test_table_is_in_execution_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["graph", str(add_model(tmp_path, "pair", PAIR))]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[1] for line in lines[1:]] == ["left", "right", "sum", "relu", "first", "second"]
    assert lines[3][3:] == ["a", "b", "s:", "2", "expr=add(@0,@1)"]


def test_tree_has_a_branch_for_each_module(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["graph", DIGITS, "--format", "tree"]) == 0
    lines = capsys.readouterr().out.splitlines()
    stem = lines.index("├── stem")
    assert [line.split()[2] for line in lines[stem + 1 : stem + 4]] == ["conv", "relu", "norm"]


@pytest.mark.parametrize(("form", "begin"), [("dot", "digraph"), ("mermaid", "%% "), ("svg", "<svg ")])
def test_drawings_go_to_a_file_or_to_the_terminal(
    form: str, begin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["graph", DIGITS, "--format", form]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(begin)
    assert run_command(["graph", DIGITS, "--format", form, "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == shown


def test_svg_has_a_box_for_each_operator(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["graph", DIGITS, "--format", "svg"]) == 0
    root = ElementTree.fromstring(capsys.readouterr().out)
    boxes = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if rect.get("rx")]
    assert len(boxes) == 33


def test_json_is_that_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["graph", DIGITS, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"nodes", "operands", "execution_order"}
