"""Operators that get the other value of a parameter, where they compute otherwise than the source."""

from pathlib import Path

import pytest

from engine.pnnx import read
from service.export.agreement import Missing
from service.export.exporter import Exported
from service.export.repair import repair
from tests.engine.models import write_model

LAYERS = "\n".join(
    (
        "pnnx.Input in 0 1 0 #0=(1,3)f32",
        *(f"F.gelu gelu_{index} 1 1 {index} {index + 1} #{index + 1}=(1,3)f32" for index in range(4)),
        "pnnx.Output out 1 0 4",
    )
)


@pytest.fixture
def files(tmp_path: Path) -> Exported:
    write_model(tmp_path, LAYERS)
    (param,) = tmp_path.glob("*.param")
    return Exported(param, param.with_suffix(".bin"), "")


def approximations(files: Exported) -> list[object]:
    graph = read(files.param, files.bin)
    return [one.params.get("approximate", "none") for one in graph.operators if one.type == "F.gelu"]


def missing(name: str) -> list[Missing]:
    return [Missing(name, "F.gelu", "")]


def test_layers_after_a_wrong_one_are_repaired_with_it(files: Exported) -> None:
    assert repair(files, missing("gelu_1"), []) == ["gelu_1", "gelu_2", "gelu_3"]
    assert approximations(files) == ["none", "tanh", "tanh", "tanh"]


def test_a_layer_that_was_right_gets_its_value_back_and_keeps_it(files: Exported) -> None:
    changed = repair(files, missing("gelu_0"), [])
    changed += repair(files, missing("gelu_2"), changed)
    assert approximations(files) == ["tanh", "tanh", "none", "tanh"]
    assert repair(files, missing("gelu_2"), changed) == []
    assert approximations(files) == ["tanh", "tanh", "none", "tanh"]


def test_other_types_are_left_alone(files: Exported) -> None:
    assert repair(files, [Missing("gelu_0", "F.relu", "")], []) == []
    assert approximations(files) == ["none"] * 4
