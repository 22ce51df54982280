"""Fifty typical mistakes at the command line: one line says what is wrong, the value, and what is expected."""

import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from service.commands.dispatch import run_command
from tests.service.api.responses import bright
from tests.service.models import DIGIT, DIGIT_CONFIG, VECTOR, add_model

NOT_A_MODEL = "is not a model; expected its folder, its .param file or its name"
NO_FILE = "no such file or directory"
FETCHED = "; URLs are not fetched, download it first"
KINDS = "expected files ending in .bmp, .jpeg, .jpg, .npy, .npz, .png, .tif, .webp"
IN_A_ROW = "toml/row: is a pipeline; name the model of one of its steps: digit, vector"
PIPELINE = """task = "pipeline"
pipeline.steps = [{name = "find", model = "digit"}, {name = "read", model = "vector", tensors = {0 = "find/1"}}]
"""
MISTAKES = [
    # commands and options
    ("frobnicate", 2, "there is no command frobnicate; see kuiper --help"),
    ("infr models/digit 5.png", 2, "there is no command infr; did you mean 'infer'?; see kuiper --help"),
    ("--versoin", 2, "there is no option --versoin; did you mean '--version'?; see kuiper --help"),
    (
        "infer models/digit 5.png --topk 3",
        2,
        "there is no option --topk; did you mean '--top-k'?; see kuiper infer",
    ),
    ("serve --prot 80", 2, "there is no option --prot; did you mean '--port'?; see kuiper serve --help"),
    ("serve models", 2, "got unexpected extra argument(s) (models); see kuiper serve --help"),
    ("diff models/digit", 2, "missing argument 'other'; see kuiper diff --help"),
    ("quantize models/digit", 2, "missing option '--data'; see kuiper quantize --help"),
    (
        "check models/digit --against 5.png",
        2,
        "option '--against' requires 2 arguments; see kuiper check --help",
    ),
    # values of options
    (
        "infer models/digit 5.png --top-k x",
        2,
        "--top-k: input should be a valid integer, unable to parse string as",
    ),
    ("infer models/digit 5.png --top-k x", 2, "an integer, got 'x'; see kuiper infer --help"),
    (
        "infer models/digit 5.png --format xml",
        2,
        "--format: 'xml' is not one of 'table', 'json', 'jsonl', 'csv'; see",
    ),
    (
        "check models/digit --backend cuda",
        2,
        "--backend: 'cuda' is not one of 'native', 'numpy', 'both'; see",
    ),
    ("trace models/digit --runs 0", 2, "--runs: input should be greater than or equal to 1, got '0'; see"),
    (
        "trace models/digit --shape 1x28",
        2,
        "'1x28': is not a shape; expected whole numbers with commas between, as",
    ),
    ("trace models/digit --shape 1,2", 1, "shape (1, 2) has 2 dimensions; expected 4, like 0: (1,1,1,10)f32"),
    (
        "trace models/digit --shape 1000000000000000000,1,1,10",
        1,
        "expected at most 4,294,967,296 for a run (max_run_bytes)",
    ),
    (
        "trace models/digit --why --layer lin --runs 1",
        1,
        "it has no candidate kernels; expected the native backend",
    ),
    (
        "trace models/vector",
        2,
        "the model has dynamic dimensions (0: (?,3)f32); give --shape, once per input",
    ),
    (
        "trace models/digit 5.png --shape 1,2",
        2,
        "--shape: is for random numbers; 5.png has shapes of its own",
    ),
    (
        "bench models/digit --batch 1:2",
        2,
        "--batch 1:2: expected whole numbers from 1, with commas between, as 1,4",
    ),
    ("check models/digit --tolerance -1", 2, "--tolerance -1.0: expected a number from 0 on, as 1e-3"),
    ("export net.py:Net -i 1,x", 2, "--input 1,x: 'x' is not a size; expected sizes with commas between, as"),
    ("export net.pt --preset imagnet", 2, "there is no preset 'imagnet'; expected imagenet, "),
    ("export net.pt --preset imagnet", 2, "unit; did you mean 'imagenet'?"),
    ("export net.pt --task clasification", 2, "text-embedding; did you mean 'classification'?"),
    ("expression add(@0,1) x", 2, "value 'x': is not a number; expected 2.5, or [1, 2.5]"),
    # models
    (
        "infer models/digt 5.png",
        1,
        f"models/digt: {NOT_A_MODEL}; in models there are digit, vector; did you mean 'dig",
    ),
    ("graph 5.png", 1, f"5.png: {NOT_A_MODEL}"),
    ("check https://example.com/net.param", 1, f"{NOT_A_MODEL}; in models there are digit, vector{FETCHED}"),
    ("check net.onnx", 1, "net.onnx: is the source of a model; export it first: kuiper export net.onnx"),
    ("infer models 5.png", 1, "models: holds several models; name one of them: digit, vector"),
    ("check models", 1, "found none and none; it is a folder of models: digit, vector"),
    ("check empty", 1, "empty: expected one .param and one .bin file, found none and none"),
    ("check broken", 1, "broken/bad.param, line 1: wrong magic number 'hello'; expected 7767517"),
    (
        "check models/digit none.bin",
        1,
        f"none.bin: cannot be read: {NO_FILE.capitalize()}; expected a zip archive",
    ),
    ("infer toml/key 5.png", 1, "toml/key/model.toml, tsk: Unknown key; known keys: task, "),
    ("infer toml/key 5.png", 1, "; did you mean 'task'?"),
    ("infer toml/value 5.png", 1, ", got 'clasification'; did you mean 'classification'?"),
    (
        "infer toml/syntax 5.png",
        1,
        "model.toml: cannot be read: Invalid value (at line 1, column 8); expected TOML",
    ),
    *((f"{command} toml/row", 1, IN_A_ROW) for command in ("graph", "trace", "bench", "check", "compile")),
    ("quantize toml/row --data wrong.npz", 1, IN_A_ROW),
    ("diff models/digit toml/row", 1, IN_A_ROW),
    ("explain toml/row 5.png", 1, IN_A_ROW),
    ("export 5.png", 1, "5.png is not a TorchScript file: not a zip archive, or only part of one. A file of"),
    (
        "export text.pt2",
        1,
        "text.pt2 is not a program of torch.export: not a zip archive, or only part of one;",
    ),
    ("export https://example.com/net.onnx", 1, f"there is no file https:/example.com/net.onnx{FETCHED}"),
    # files
    ("infer models/digit none.png", 1, f"none.png: there is no such file, or none in it; {KINDS}"),
    ("infer models/digit empty", 1, f"empty: there is no such file, or none in it; {KINDS}"),
    ("infer models/digit https://example.com/cat.png", 1, f"{KINDS}{FETCHED}"),
    ("explain models/digit none.png", 1, f"none.png: {NO_FILE}"),
    (
        "explain models/digit https://example.com/cat.png",
        1,
        f"https:/example.com/cat.png: {NO_FILE}{FETCHED}",
    ),
    (
        "explain models/digit notes.txt",
        1,
        "the model takes no texts: its model.toml has no [text] table; send",
    ),
    ("explain models/digit 5.png --target p55", 1, "; did you mean 'p5'?"),
    (
        "explain models/vector 5.png",
        1,
        "the model takes no images: its model.toml has no [image] table; send",
    ),
    (
        "trace models/digit notes.npz",
        1,
        "notes.npz: holds no arrays of numbers that can be read; expected an .npy or .npz",
    ),
    ("trace models/digit wrong.npz", 1, "shape (3,) has 1 dimensions; expected 4, like 0: (1,1,1,10)f32"),
    ("graph models/digit --format svg --output none/x.svg", 1, f"none/x.svg: {NO_FILE}"),
    ("infer models/digit 5.png --output none/x", 1, f"none/x: {NO_FILE}"),
    ("infer models/digit 5.png --output empty", 1, "empty: is a directory"),
    ("infer models/digit 5.png --drawn notes.txt", 1, "notes.txt: file exists"),
    ("explain models/digit 5.png --output none/x.png", 1, f"none/x.png: {NO_FILE}"),
    ("trace models/digit --chrome none/x.json", 1, f"none/x.json: {NO_FILE}"),
    ("check models/digit --layers none.npz", 1, f"none.npz: {NO_FILE}"),
    ("quantize models/digit --data none", 1, f"none: {NO_FILE}"),
    ("quantize models/digit --data empty", 1, "empty: holds no pictures; expected files ending in "),
    # servers and their settings
    (
        "models none",
        1,
        "there is no folder none; expected a folder of models, or the address of a server, as http://",
    ),
    (
        "models localhost:8000",
        1,
        "expected a folder of models, or the address of a server, as http://127.0.0.1:8000",
    ),
    (
        "models s3://bucket/x",
        1,
        "kuiper serve --models s3://bucket/x serves a store, and its address lists the models",
    ),
    ("models http://127.0.0.1:FREE", 1, "Connection refused; expected the address of a running server"),
    (
        "models http://127.0.0.1:1 --key-file notes.npz",
        1,
        "notes.npz: holds no API key; expected one line of ASCII",
    ),
    ("models http://127.0.0.1:1 --key-file none", 1, f"none: {NO_FILE}"),
    ("serve --port 99999", 2, "port: input should be less than or equal to 65535, got '99999'"),
    ("serve --log-level inf", 2, "got 'inf'; did you mean 'info'?"),
    ("serve --config none.toml", 2, f"config: cannot read none.toml: {NO_FILE.capitalize()}"),
    ("serve --config key.toml", 2, "prot: unknown setting; did you mean port?"),
    (
        "serve --models ftp://x",
        2,
        "models: expected a folder, or a URL that begins with s3, gs, az, hf, file and ://",
    ),
    ("serve --ssl-certfile none.pem", 2, f"ssl_certfile: cannot read none.pem: {NO_FILE.capitalize()}"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mistakes")
    for name, toml in (("key", "tsk = 1"), ("value", 'task = "clasification"'), ("syntax", "task = ")):
        (add_model(root / "toml", name, DIGIT) / "model.toml").write_text(f"{toml}\n")
    (root / "toml/row").mkdir()
    (root / "toml/row/model.toml").write_text(PIPELINE)
    add_model(root / "models", "digit", DIGIT, DIGIT_CONFIG)
    add_model(root / "models", "vector", VECTOR)
    for name in ("empty", "broken", "models/.digit.half"):
        (root / name).mkdir()
    (root / "broken/bad.param").write_text("hello\n")
    (root / "broken/bad.bin").write_bytes(b"")
    (root / "5.png").write_bytes(bright(5))
    (root / "notes.txt").write_text("hello")
    (root / "text.pt2").write_text("hello")
    (root / "notes.npz").write_bytes(b"\xffhello")
    (root / "key.toml").write_text("prot = 1\n")
    np.savez(root / "wrong.npz", foo=np.zeros(3, np.float32))
    return root


@pytest.fixture(scope="module")
def free_port() -> Iterator[int]:
    with socket.socket() as held:  # bound, but nobody listens
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize(("command", "code", "message"), MISTAKES)
def test_a_mistake_is_one_line_and_an_exit_code(
    command: str,
    code: int,
    message: str,
    folder: Path,
    free_port: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KUIPER_BACKEND", "numpy")
    monkeypatch.setattr("service.commands.inference.configure_logging", lambda level, log_format: None)
    assert run_command(shlex.split(command.replace("FREE", str(free_port)))) == code
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("kuiper: ")
    assert said.count("\n") == 1
    assert not any(
        word in said
        for word in ("Traceback", "Value error", "[Errno", "PytorchStream", "pickle", ".digit.half")
    )
