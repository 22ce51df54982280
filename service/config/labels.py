"""The labels of classes: a list, a table, or a file beside `model.toml`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.config.model_config_error import ModelConfigError
from service.config.regular_file import read_text

MAX_LABEL = 1 << 17
"""Maximum classes of a table of labels."""
_NUMBERED = re.compile(r"([0-9]{1,7})\s*:\s*(\S.*)")


def label_list(value: Any) -> Any:
    """Return a table of labels, from number of a class to its name, as a list; anything else as it is.

    Classes that a table leaves out are called by their numbers.

    Raises:
        ValueError: a key is no number of a class, or too large.
    """
    if not isinstance(value, Mapping):
        return value
    numbers = {}
    for key, label in value.items():
        text = str(key)
        if not (text.isascii() and text.isdigit() and int(text) < MAX_LABEL):
            raise ValueError(
                f"{text[:40]!r} is not a class; expected whole numbers from 0 to {MAX_LABEL - 1} as keys"
            )
        numbers[int(text)] = label
    return [numbers.get(index, str(index)) for index in range(max(numbers, default=-1) + 1)]


def split_labels(text: str, *, are_characters: bool) -> list[str]:
    """Return the labels in a text, one per line.

    Args:
        text: the text; what follows the last label may be empty lines.
        are_characters: a label is a character, so that spaces count, and a line ends at a line feed alone.

    Raises:
        ValueError: a line is empty; the message names it.
    """
    if are_characters:
        labels = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    else:
        labels = [line.strip() for line in text.rstrip().splitlines()] or [""]
    if "" in labels:
        raise ValueError(f"line {labels.index('') + 1} is empty")
    return labels


def read_labels(config: Path, name: str, *, are_characters: bool = False) -> list[str]:
    """Return the labels in a file, one per line; where all lines are like `3: cat`, by these numbers.

    Args:
        config: the `model.toml` that names it.
        name: its name; it lies beside that.
        are_characters: a label is a character, so that spaces count.

    Raises:
        ModelConfigError: it cannot be read, has an empty line, or names a class twice.
    """
    path = config.parent / name
    if Path(name).name != name:
        raise ModelConfigError(config, "labels", f"{name!r} is not a plain name", "a file beside model.toml")
    try:
        text = read_text(path, "utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error  # without the path, which is named already
        problem = f"{path} cannot be read: {reason}"
        raise ModelConfigError(config, "labels", problem, "UTF-8, one label per line") from error
    try:
        labels = split_labels(text, are_characters=are_characters)
    except ValueError as error:
        raise ModelConfigError(config, "labels", f"{path}, {error}", "one label per line") from error
    return labels if are_characters else _by_number(config, path, labels)


def _by_number(config: Path, path: Path, lines: list[str]) -> list[str]:
    """Return labels in the order of the numbers before them; as they are where a line has none."""
    matches = [match for line in lines if (match := _NUMBERED.fullmatch(line))]
    if len(matches) < len(lines):
        return lines
    table = {int(match[1]): match[2] for match in matches}
    if len(table) < len(lines):
        raise ModelConfigError(config, "labels", f"{path} names a class twice", "each number once")
    try:
        return list(label_list(table))
    except ValueError as error:
        raise ModelConfigError(config, "labels", f"{path}: {error}") from error
