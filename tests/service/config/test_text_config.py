"""The tokenizer that `[text]` names: it is read with the rest, up to a size of its own."""

from pathlib import Path

import pytest

import service.tasks  # registers the tasks
from service.config import text_config
from service.config.model_config import ModelConfigError, load_model_config

del service

CONFIG = 'task = "text-embedding"\n\n[text]\nmax_length = 8\n'


def test_a_tokenizer_of_many_languages_is_read(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(CONFIG)
    (tmp_path / "tokenizer.json").write_text(" " * (17 << 20) + "{}")
    text = load_model_config(tmp_path).text
    assert text is not None
    assert text.tokenizer.endswith("{}")


def test_a_tokenizer_that_is_larger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_config, "_MAX_BYTES", 100)
    (tmp_path / "model.toml").write_text(CONFIG)
    (tmp_path / "tokenizer.json").write_text(" " * 101)
    with pytest.raises(ModelConfigError, match=r"it has 101 bytes; the maximum is 100"):
        load_model_config(tmp_path)
