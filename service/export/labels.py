"""The labels of a model that is exported: those that the user names, or that its source or its preset has."""

from collections.abc import Sequence
from pathlib import Path

from engine import Array
from service.config.labels import split_labels
from service.config.regular_file import read_text
from service.export.errors import ExportError
from service.export.preset import LISTS, Preset, class_names
from service.export.source import Source
from service.export.wishes import Wishes


def choose_labels(wishes: Wishes, source: Source, outputs: Sequence[Array]) -> tuple[list[str], list[str]]:
    """Return the labels of a model, and what is to be said of them, a sentence each.

    Args:
        wishes: what the user said.
        source: what the model is exported from.
        outputs: what it made of an example.

    Raises:
        ExportError: they cannot be read, or are needed and not there.
    """
    if wishes.labels is not None:
        return read_labels(wishes.labels, are_characters=wishes.is_reader), []
    if wishes.is_reader:
        return _characters(source), []
    preset = wishes.known_preset
    if preset is not None and preset.labels is not None:
        return _usual(preset, preset.labels, outputs)
    return _known(source, count_classes(outputs))


def read_labels(wish: str, *, are_characters: bool) -> list[str]:
    """Return the labels of a list that ships, or those of a file.

    Raises:
        ExportError: the file cannot be read, or a line is empty.
    """
    if wish in LISTS:
        return class_names(wish)
    try:
        return split_labels(read_text(Path(wish), "utf-8-sig"), are_characters=are_characters)
    except (OSError, ValueError) as error:
        raise ExportError(
            f"--labels {wish} cannot be read: {error}; expected a text file with one label per line, or "
            + " or ".join(LISTS)
        ) from error


def count_classes(outputs: Sequence[Array]) -> int:
    """Return how many classes the first output has; 0 where it is no list of them."""
    shape = outputs[0].shape if outputs else ()
    return shape[1] if len(shape) >= 2 and all(size == 1 for size in shape[2:]) else 0


def _known(source: Source, count: int) -> tuple[list[str], list[str]]:
    labels = list(source.known.labels)
    if not labels or count in (0, len(labels)):
        return labels, []
    return [], [
        f"{source.title} names {len(labels)} classes and has {count}; --labels names a file with one per line"
    ]


def _usual(preset: Preset, name: str, outputs: Sequence[Array]) -> tuple[list[str], list[str]]:
    names, count = class_names(name), count_classes(outputs)
    if preset.task != "classification" or count == len(names):
        return names, []
    note = f"it has {count} classes and no labels; --labels names a file with one per line"
    return [], [note] if count else []


def _characters(source: Source) -> list[str]:
    characters = source.characters()
    if not characters:
        raise ExportError(
            f"{source.title} does not say which characters it reads: --labels names a file with one per line, in order "
            "and without the blank"
        )
    return characters
