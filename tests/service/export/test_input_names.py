"""Inputs of an exported graph have the names of the source where these are plain, and nobody else's."""

from pathlib import Path

import pytest

from service.export.input_names import name_inputs

PARAM = """7767517
4 3
pnnx.Input               pnnx_input_0             0 1 0 #0=(?,2)f32
pnnx.Input               pnnx_input_1             0 1 1 #1=(?,2)f32
pnnx.Expression          sum                      2 1 0 1 total expr=add(@0,@1) #total=(?,2)f32
pnnx.Output              pnnx_output_0            1 0 total
"""


def names(folder: Path, wanted: list[str]) -> list[str]:
    file = folder / "net.param"
    file.write_text(PARAM)
    name_inputs(file, wanted)
    text = file.read_text()
    assert text.splitlines()[4:] == PARAM.splitlines()[4:]
    return [line.split()[1] for line in text.splitlines()[2:4]]


def test_inputs_are_called_as_in_the_source(tmp_path: Path) -> None:
    assert names(tmp_path, ["input_ids", "mask.1"]) == ["input_ids", "mask.1"]
    assert "input_ids                0 1 0 #0=(?,2)f32" in (tmp_path / "net.param").read_text()


@pytest.mark.parametrize(
    "wanted", [["a"], ["a", "a"], ["a", "b c"], ["a", ""], ["1", "0"], ["a", "sum"], ["a", "total"]]
)
def test_names_that_could_not_be_distinguished_are_not_taken(tmp_path: Path, wanted: list[str]) -> None:
    assert names(tmp_path, wanted) == ["pnnx_input_0", "pnnx_input_1"]
