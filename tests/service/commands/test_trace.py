"""What `kuiper trace` prints of small models, whose layers are known."""

import json
from pathlib import Path

import numpy as np
import pytest

from service.commands.dispatch import run_command
from tests.service.models import MISMATCH, PAIR, VECTOR, add_model

ROOT = Path(__file__).parents[3]
DIGITS, SEVEN = ROOT / "models/digits", ROOT / "models/digits/samples/7.png"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return add_model(tmp_path, "pair", PAIR)


def test_table_has_a_line_for_each_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["trace", str(DIGITS), str(SEVEN), "--runs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 33 + 1
    assert lines[4].split()[:4] == ["3", "stem.conv", "nn.Conv2d", "1x16x28x28"]
    assert lines[-1].endswith(f"on {SEVEN}")
    assert all(len(line) <= 120 for line in lines)
    assert "\x1b" not in "".join(lines)


def test_json_is_that_of_the_server(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["trace", str(pair), "--runs", "1", "--json"]) == 0
    trace = json.loads(capsys.readouterr().out)
    assert [layer["name"] for layer in trace["layers"]] == ["left", "right", "sum", "relu", "first", "second"]
    assert trace["layers"][2]["outputs"][0]["shape"] == [2]


def test_follow_logs_operators_in_order(
    pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", a=np.ones(2, np.float32), right=np.ones(2, np.float32))
    assert run_command(["trace", str(pair), str(tmp_path / "in.npz"), "--follow"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("[3/6] pnnx.Expression sum  (2)f32, (2)f32 -> (2)f32")
    assert [line.split()[2] for line in lines[:6]] == ["left", "right", "sum", "relu", "first", "second"]
    assert lines[0].endswith(" ms")
    assert lines[6].startswith("total ")


def test_chrome_file_has_a_slice_for_each_layer(pair: Path, tmp_path: Path) -> None:
    assert run_command(["trace", str(pair), "--chrome", str(tmp_path / "out.json"), "--runs", "1"]) == 0
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["args"]["name"] for event in slices] == ["left", "right", "sum", "relu", "first", "second"]
    assert all(event["dur"] >= 0 for event in slices)


def test_comparison_pairs_layers_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (
        add_model(tmp_path, "a", VECTOR),
        add_model(tmp_path, "b", VECTOR.replace("relu ", "other")),
    )
    assert run_command(["trace", str(first), "--shape", "2,3", "--compare", str(second), "--runs", "1"]) == 0
    shown = capsys.readouterr().out
    assert "only in the first" in shown
    assert "times as long" in shown


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_arrays_are_converted_as_a_server_does(
    pair: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = add_model(tmp_path, "one", VECTOR)
    doubles, wholes = (np.ones((2, 3)).astype(kind) for kind in (np.float64, np.int64))
    for values, code, reported in ((doubles, 0, ""), (wholes, 1, "is i64; expected f32 (floats)")):
        file = tmp_path / f"in.{suffix}"
        if suffix == "npy":
            np.save(file, values)
        else:
            np.savez(file, values)
        assert run_command(["trace", str(one), str(file)]) == code
        assert reported in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["none"], 1, "none: is not a model; expected its folder"),
        (["PAIR", "--shape", "2,x"], 2, "'2,x': is not a shape"),
        (["PAIR", "--shape", "2"], 1, "1 shapes; expected one for each of 2 inputs"),
        (["PAIR", "FILE", "--shape", "2"], 2, "has shapes of its own"),
        (["PAIR", "FILE"], 1, "no array for input b"),
        (["PAIR", "none.npy"], 1, "none.npy: no such file"),
        (["PAIR", "TORN"], 1, "expected an .npy of numbers"),
        (["PAIR", "VAST"], 1, "expected an .npy of numbers"),
        (["PAIR", "none.png"], 1, "has no [image] table"),
        (["VECTOR"], 2, "give --shape"),
        (["MISMATCH"], 1, "pnnx.Expression sum"),
    ],
)
def test_mistakes_are_reported_in_a_line(
    arguments: list[str],
    code: int,
    problem: str,
    pair: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.savez(tmp_path / "in.npz", a=np.ones(2, np.float32))
    (tmp_path / "torn.npy").write_bytes(b"\x93NUMPY\x01\x00\x46\x00{'descr': (")
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,)}\n"
    (tmp_path / "vast.npy").write_bytes(b"\x93NUMPY\x01\x00\x47\x00" + head)
    paths = {
        "TORN": tmp_path / "torn.npy",
        "VAST": tmp_path / "vast.npy",
        "PAIR": pair,
        "VECTOR": add_model(tmp_path, "vector", VECTOR),
        "MISMATCH": add_model(tmp_path, "mismatch", MISMATCH),
        "FILE": tmp_path / "in.npz",
    }
    assert run_command(["trace", *(str(paths.get(word, word)) for word in arguments)]) == code
    printed = capsys.readouterr()
    assert problem in printed.err
    assert "Traceback" not in printed.err


def test_why_shows_the_candidates_of_each_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["trace", str(DIGITS), str(SEVEN), "--runs", "1", "--why"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["layer", "type", "candidate", "estimated", "ms", "measured", "ms"]
    assert any(line.startswith("stem.conv") for line in lines)
    assert "layers with candidates in a run of" in lines[-1]
    chosen = [line for line in lines if " chosen " in line]
    assert len(chosen) == int(lines[-1].split()[0]) > 5


def test_why_of_one_layer(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["trace", str(DIGITS), str(SEVEN), "--runs", "1", "--why", "--json", "--layer"]
    assert run_command([*command, "block1.conv1"]) == 0
    (layer,) = json.loads(capsys.readouterr().out)
    assert (layer["name"], layer["type"]) == ("block1.conv1", "nn.Conv2d")
    assert layer["measured_ms"] > 0
    times = [each["estimated_ms"] for each in layer["candidates"]]
    assert times == sorted(times)
    assert [each["chosen"] for each in layer["candidates"]] == [True, *[False] * (len(times) - 1)]
    assert {"direct", "winograd"} <= {each["name"] for each in layer["candidates"]}
    assert run_command([*command, "block1.conv"]) == 1
    error = capsys.readouterr().err
    assert "--layer block1.conv: it has no candidate kernels" in error
    assert "did you mean 'block1.conv2'?" in error


def test_shapes_beyond_the_memory_of_a_run_are_refused_before_inputs_are_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("service.commands.opening.trial_inputs", fail)
    assert run_command(["trace", str(DIGITS), "--shape", "1000000,1,28,28"]) == 1
    error = capsys.readouterr().err
    assert "would take 6,276,000,000 bytes; expected at most 4,294,967,296 for a run (max_run_bytes)" in error
