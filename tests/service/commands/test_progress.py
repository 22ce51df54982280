"""What commands that take seconds show at a terminal, and that nothing of it stays or comes among their output."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.jit import KernelCache
from service.commands.dispatch import run_command
from tests.service.api.responses import bright
from tests.service.models import DIGIT, DIGIT_CONFIG, add_model
from tests.service.terminal import CLEAR, Terminal

QUICK = ("--seconds", "0.01", "--threads", "1", "--batch", "1")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    store = CodeStore(tmp_path / "cache")
    monkeypatch.setattr("engine.compiler.emit.code_store.code_store", lambda: store)
    monkeypatch.setattr("engine.compiler.program.assembler.cache", KernelCache(store))
    root = logging.getLogger()
    level = root.level
    monkeypatch.setattr(root, "handlers", [])
    model = add_model(tmp_path / "models", "digit", DIGIT, DIGIT_CONFIG)
    (tmp_path / "5.png").write_bytes(bright(5))
    yield {"MODEL": str(model), "PICTURE": str(tmp_path / "5.png")}
    root.setLevel(level)


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        (
            "check MODEL --backend both",
            ["reading the model", "compiling, ", "comparing compiled kernels with"],
        ),
        ("compile MODEL", ["loading 0 of 1 models, reading digit", "loading 0 of 1 models, compiling digit"]),
        ("trace MODEL PICTURE --runs 2", ["compiling", "measuring, run 2 of 2"]),
        ("diff MODEL MODEL PICTURE", ["reading the models", "comparing graphs, weights and results"]),
        (f"bench MODEL {' '.join(QUICK)}", ["compiling", "measuring, 1 of 3", "measuring, 3 of 3"]),
        ("infer MODEL PICTURE PICTURE", ["loading 0 of 1 models", "running, 1 of 1 files done"]),
        ("explain MODEL PICTURE", ["loading 0 of 1 models", "running on changed inputs, to explain 5.png"]),
    ],
)
def test_a_command_shows_what_it_does(
    command: str,
    steps: list[str],
    files: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert run_command([files.get(word, word) for word in command.split()]) == 0, terminal.getvalue()
    shown = terminal.getvalue().split(CLEAR)
    places = [next(i for i, line in enumerate(shown) if line.startswith(step)) for step in steps]
    assert places == sorted(places)
    assert terminal.getvalue().endswith(CLEAR)
    assert CLEAR not in capsys.readouterr().out
