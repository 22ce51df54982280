"""Files of labels: one per line, of which a line may be a character."""

from pathlib import Path

import pytest

import service.tasks  # registers the tasks
from service.config.labels import split_labels
from service.config.model_config import ModelConfigError, load_model_config

del service


def write(folder: Path, task: str, text: str) -> Path:
    (folder / "model.toml").write_text(f'task = "{task}"\nlabels = "labels.txt"\n')
    (folder / "labels.txt").write_bytes(text.encode())
    return folder


def test_names_are_stripped() -> None:
    assert split_labels(" cat\r\ndog \n\n  \n", are_characters=False) == ["cat", "dog"]


def test_characters_are_kept_as_they_are() -> None:
    assert split_labels("a\r\n \n\u3000\n\x85\n3: b\n\n", are_characters=True) == [
        "a",
        " ",
        "\u3000",
        "\x85",
        "3: b",
    ]


@pytest.mark.parametrize("are_characters", [False, True])
def test_an_empty_line_is_named(are_characters: bool) -> None:
    for text, line in (("a\n\nb", 2), ("", 1)):
        with pytest.raises(ValueError, match=f"line {line} is empty"):
            split_labels(text, are_characters=are_characters)


def test_the_task_says_whether_labels_are_characters(tmp_path: Path) -> None:
    assert load_model_config(write(tmp_path, "ocr", "1: a\n\u3000\n")).labels == ("1: a", "\u3000")
    assert load_model_config(write(tmp_path, "classification", "1: a\n0: b\n")).labels == ("b", "a")
    with pytest.raises(ModelConfigError, match="line 2 is empty"):
        load_model_config(write(tmp_path, "classification", "a\n\u3000\nb\n"))
    with pytest.raises(ModelConfigError, match="task"):
        load_model_config(write(tmp_path, "reading", "a\n"))
