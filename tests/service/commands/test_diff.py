"""Two models that differ in known places."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine import pnnx
from service.commands.dispatch import run_command
from tests.service.models import PAIR, VECTOR, add_model

RESHAPE = "Tensor.reshape relu 1 1 0 1 shape=(1,4)"
DIGITS = Path(__file__).parents[3] / "models/digits"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def differing(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    return {
        pair["name"] or pair["other"]: pair for pair in json.loads(capsys.readouterr().out) if pair["differs"]
    }


def test_a_model_agrees_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["diff", str(DIGITS), str(DIGITS)]) == 0
    assert "33 operators agree" in capsys.readouterr().out


def test_a_changed_weight_is_found_and_what_follows_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(DIGITS, tmp_path / "m")
    graph = pnnx.read(tmp_path / "m/digits.pnnx.param", tmp_path / "m/digits.pnnx.bin")
    weight = next(operator for operator in graph.operators if operator.name == "widen2.conv").attrs["weight"]
    largest = np.abs(weight.array()).max()
    changed = weight.array().copy()
    changed[0, 0, 0, 0] += largest / 2
    data = (tmp_path / "m/digits.pnnx.bin").read_bytes()
    assert data.count(weight.data.tobytes()) == 1
    archive = rewritten(tmp_path / "m/digits.pnnx.bin", "widen2.conv.weight", changed.tobytes())
    (tmp_path / "m/digits.pnnx.bin").write_bytes(archive)
    assert run_command(["diff", str(DIGITS), str(tmp_path / "m"), "--json"]) == 1
    found = differing(capsys)
    assert next(iter(found)) == "widen2.conv"
    assert found["widen2.conv"]["weights"] == pytest.approx(0.5, rel=1e-3)
    assert found["widen2.conv"]["results"] is not None
    assert all(pair["weights"] in (None, 0) for name, pair in found.items() if name != "widen2.conv")
    assert "stem.conv" not in found


def rewritten(path: Path, entry: str, content: bytes) -> bytes:
    """Return an archive with one entry replaced."""
    import io
    import zipfile

    target = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as made:
        for name in source.namelist():
            made.writestr(name, content if name == entry else source.read(name))
    return target.getvalue()


def test_changes_of_the_graph_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = add_model(tmp_path, "one", PAIR)
    other = add_model(
        tmp_path, "other", PAIR.replace("add(@0,@1)", "sub(@0,@1)").replace("relu   1", "act    1")
    )
    assert run_command(["diff", str(one), str(other)]) == 1
    shown = capsys.readouterr().out
    assert "expr add(@0,@1) -> sub(@0,@1)" in shown
    assert "relu = act" in shown
    assert "results: 2, the first is pnnx.Expression sum" in shown


def test_operators_of_one_model_only_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = add_model(tmp_path, "one", VECTOR)
    other = add_model(tmp_path, "other", VECTOR.replace("nn.ReLU     relu", "nn.Sigmoid  squash"))
    assert run_command(["diff", str(one), str(other), "--shape", "2,3", "--json"]) == 1
    changes = {name: pair["changes"] for name, pair in differing(capsys).items()}
    assert changes["relu"] == ["only in the first"]
    assert changes["squash"] == ["only in the second"]


def test_another_that_does_not_take_the_input_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (
        add_model(tmp_path, "one", VECTOR),
        add_model(tmp_path, "other", VECTOR.replace("nn.ReLU     relu          1 1 0 1", RESHAPE)),
    )
    assert run_command(["diff", str(one), str(other), "--shape", "2,3"]) == 1
    assert "the second does not run" in capsys.readouterr().out
