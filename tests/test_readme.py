"""What the README shows works."""

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import RunResult
from service.config.model_config import ModelConfig

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_engine_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in blocks("python") if "RuntimeGraph" in block]
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"image": np.zeros((1, 1, 28, 28), np.float32)}
    exec(compile(example, "README.md", "exec"), names)
    result = names["result"]
    assert isinstance(result, RunResult)
    assert "3" in result.captured
    assert "nn.Conv2d" in capsys.readouterr().out


def test_model_configuration_example_is_valid() -> None:
    (example,) = blocks("toml")
    config = ModelConfig.model_validate(tomllib.loads(example) | {"labels": ["a", "b"]})
    assert config.image is not None
    assert config.image.resize == "crop"


def test_files_and_targets_that_are_named_exist() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)\b", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
