"""How an expression is shown. The values expected are worked out by hand."""

import json

import pytest

from service.commands.dispatch import run_command

TEXT = "add(@0,mul(@1,0.5))"


def test_tokens_tree_and_value_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["expression", TEXT, "3", "[4, 8]"]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert " 9  OPERAND".replace(" 9", "11") in "\n".join(lines)
    assert lines[-8:] == [
        "add",
        "├── @0",
        "└── mul",
        "    ├── @1",
        "    └── 0.5",
        "",
        "reverse Polish  @0 @1 0.5 mul add",
        "value           [5., 7.]",
    ]


def test_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["expression", TEXT, "3", "4", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["reverse_polish"] == ["@0", "@1", "0.5", "mul", "add"]
    assert shown["tree"] == {
        "label": "add",
        "children": [{"label": "@0"}, {"label": "mul", "children": [{"label": "@1"}, {"label": "0.5"}]}],
    }
    assert (shown["operands"], shown["value"]) == ([0, 1], 5.0)
    assert shown["tokens"][2] == {"position": 4, "kind": "OPERAND", "text": "@0"}


def test_a_number_that_json_does_not_know_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["expression", "log(@0)", "0.0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] is None


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["1"], "1 values are given; expected 2"),
        (["1", "x"], "value 'x': is not a number"),
        (["1", '"x"'], "value '\"x\"': holds values other than numbers"),
        (["1", "[[1], 2]"], "value '[[1], 2]': is not a number"),
    ],
)
def test_values_that_do_not_fit_are_reported(
    values: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["expression", TEXT, *values]) == 2
    assert problem in capsys.readouterr().err


def test_deep_nesting_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["expression", "neg(" * 40 + "@0" + ")" * 40, "2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["value", "2"]
