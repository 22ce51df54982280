"""What `kuiper explain` prints and writes."""

import json
from pathlib import Path

import pytest
from PIL import Image

from engine.pnnx.archive_writer import write_archive
from service.commands.dispatch import run_command
from tests.service.models import DIGIT, DIGIT_CONFIG, add_model
from tests.service.text.models import VECTORS, tokenizer_json

DIGITS = Path(__file__).parents[3] / "models/digits"
SEVEN = str(DIGITS / "samples/7.png")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_WARM_UP", "false")
    monkeypatch.setattr("service.commands.inference.configure_logging", lambda level, log_format: None)


def test_a_picture_is_written_with_its_heatmap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "seven.png"
    assert run_command(["explain", str(DIGITS), SEVEN, "--output", str(target)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["prediction", "7"]
    assert [line.split()[0] for line in lines] == ["prediction", "method", "runs", "most", "written"]
    with Image.open(target) as drawn, Image.open(SEVEN) as picture:
        assert drawn.size == picture.size


def test_json_holds_the_heatmap(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--method", "score-cam", "--target", "1", "--json"]
    assert run_command(["explain", str(DIGITS), SEVEN, *options]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["method"], document["target"]["label"]) == ("score-cam", "1")
    assert len(document["heatmap"]) == 28
    assert document["region"] == [0, 0, 140, 140]
    assert "overlay" not in document


def test_words_are_printed_by_importance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = """
    pnnx.Input   ids   0 1 i #i=(?,?)i64
    nn.Embedding table 1 1 i e embedding_dim=5 num_embeddings=8 sparse=False @weight=(8,5)f32 #e=(?,?,5)f32
    torch.mean   mean  1 1 e z dim=(1) keepdim=False #z=(?,5)f32
    pnnx.Output  out   1 0 z
    """
    folder = tmp_path / "words"
    add_model(
        tmp_path, "words", lines, 'task = "text-classification"\n[text]\ntokenizer = "tokenizer.json"\n'
    )
    (folder / "tokenizer.json").write_text(tokenizer_json())
    write_archive(folder / "model.bin", [("table.weight", memoryview(VECTORS.tobytes()))])
    text = tmp_path / "text.txt"
    text.write_text("red cat green")
    assert run_command(["explain", str(folder), str(text)]) == 0
    printed = capsys.readouterr().out
    assert "words" in printed
    importances = [
        float(line.split()[1]) for line in printed.splitlines() if line.split()[0] in {"red", "cat", "green"}
    ]
    assert len(importances) == 3
    assert importances == sorted(importances, key=lambda value: -abs(value))
    assert run_command(["explain", str(folder), str(text), "--output", str(tmp_path / "x.png")]) == 1


def test_errors_name_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = add_model(tmp_path, "digit", DIGIT, DIGIT_CONFIG)
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    for file, problem in ((bad, "not an image"), (tmp_path / "none.png", "no such file")):
        assert run_command(["explain", str(model), str(file)]) == 1
        error = capsys.readouterr().err
        assert str(file) in error
        assert problem in error
