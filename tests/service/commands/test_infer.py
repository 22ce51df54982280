"""What `kuiper infer` prints: the labels of pictures whose digits are known."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from service.commands.dispatch import run_command
from tests.service.api.responses import bright
from tests.service.models import DIGIT, DIGIT_CONFIG, VECTOR, add_model

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "models/digits"
SAMPLES = DIGITS / "samples"


@pytest.fixture(autouse=True)
def numpy_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_BACKEND", "numpy")
    monkeypatch.setenv("KUIPER_WARM_UP", "false")
    monkeypatch.setenv("KUIPER_API_KEYS", "a-key-that-only-a-server-needs")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("service.commands.inference.configure_logging", lambda level, log_format: None)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that loads at once; `picture` shows it class `p5`."""
    return add_model(tmp_path_factory.mktemp("models"), "digit", DIGIT, DIGIT_CONFIG)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "5.png"
    path.write_bytes(bright(5))
    return path


def test_a_folder_gives_a_line_for_each_picture_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["infer", str(DIGITS), str(SAMPLES)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [Path(row[0]).name for row in rows] == [f"{digit}.png" for digit in range(10)]
    assert [row[2] for row in rows] == [str(digit) for digit in range(10)]


def test_globs_and_files_are_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(SAMPLES / "[34].png"), str(SAMPLES / "3.png")]
    assert run_command(["infer", str(DIGITS), *files, "--json", "--top-k", "2"]) == 0
    responses = json.loads(capsys.readouterr().out)
    assert [response["predictions"][0][0]["label"] for response in responses] == ["3", "4"]
    assert all(len(response["predictions"][0]) == 2 for response in responses)
    assert "data" not in responses[0]["outputs"][0]


def test_a_bad_file_stops_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small: Path, picture: Path
) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    arguments = ["infer", str(small), str(bad), str(picture), "--format", "jsonl"]
    assert run_command(arguments) == 1
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert "not an image" in first["error"]
    assert second["predictions"][0][0]["label"] == "p5"


def test_csv_has_a_row_for_each_prediction(tmp_path: Path, small: Path, picture: Path) -> None:
    target = tmp_path / "out.csv"
    arguments = ["infer", str(small), str(picture), "--format", "csv", "--output", str(target)]
    assert run_command([*arguments, "--top-k", "3"]) == 0
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert [row["rank"] for row in rows] == ["0", "1", "2"]
    assert (rows[0]["label"], rows[0]["item"]) == ("p5", "0")


def test_pictures_are_drawn_under_names_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small: Path, picture: Path
) -> None:
    twin = tmp_path / "more" / picture.name
    twin.parent.mkdir()
    twin.write_bytes(picture.read_bytes())
    arguments = ["infer", str(small), str(picture), str(twin), "--drawn", str(tmp_path / "drawn")]
    assert run_command([*arguments, "--json"]) == 0
    drawn = [Path(response["drawn"]) for response in json.loads(capsys.readouterr().out)]
    assert {path.name for path in drawn} == {"5.png", "5-2.png"}  # the first to be drawn has the shorter name
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_arrays_of_a_raw_model_are_matched_by_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = add_model(tmp_path, "vector", VECTOR)
    np.save(tmp_path / "one.npy", np.ones((2, 3), np.float32))
    np.savez(tmp_path / "two.npz", np.ones((4, 3), np.float32))
    assert run_command(["infer", str(model), str(tmp_path / "one.npy"), str(tmp_path / "two.npz")]) == 0
    shown = capsys.readouterr().out
    assert "1: 2x3 float32" in shown
    assert "1: 4x3 float32" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["MODEL", "none.png"], 1, "none.png: there is no such file"),
        (["none", "SAMPLE"], 1, "none: is not a model"),
        (["MODEL"], 2, "missing argument"),
        (["MODEL", "SAMPLE", "--format", "xml"], 2, "xml"),
    ],
)
def test_mistakes_are_reported(
    arguments: list[str], code: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {"MODEL": str(DIGITS), "SAMPLE": str(SAMPLES / "1.png")}
    assert run_command(["infer", *(paths.get(word, word) for word in arguments)]) == code
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bad.npz", b"PK\x03\x04 no archive"),
        ("bad.npy", b"no array"),
        ("empty.npy", b""),
        ("torn.npy", b"\x93NUMPY\x01\x00\x46\x00{'descr': ("),
        ("cut.npy", b"\x93NUMPY\x01\x00\x0a\x00{'descr': ("),
        (
            "vast.npy",
            b"\x93NUMPY\x01\x00\x47\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,)}\n",
        ),
    ],
)
def test_a_file_without_arrays_stops_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small: Path, picture: Path, name: str, content: bytes
) -> None:
    bad = tmp_path / name
    bad.write_bytes(content)
    assert run_command(["infer", str(small), str(bad), str(picture), "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert "holds no arrays of numbers that can be read" in first["error"]
    assert second["predictions"][0][0]["label"] == "p5"


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_names_that_are_no_unicode_are_reported_all_the_same(
    tmp_path: Path, small: Path, picture: Path, form: str
) -> None:
    file = picture.rename(tmp_path / "bad\udcff.png")
    target = tmp_path / "out"
    assert run_command(["infer", str(small), str(file), "--format", form, "--output", str(target)]) == 0
    assert "bad\ufffd.png" in target.read_text(encoding="utf-8")


def test_a_folder_of_several_models_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["infer", str(DIGITS.parent), str(SAMPLES / "5.png")]) == 1
    reported = capsys.readouterr().err
    assert (
        "holds several models; name one of them: digit-masks, digit-reader, digit-scenes, digits" in reported
    )
