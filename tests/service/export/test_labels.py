"""Labels of an export: those that the user names come first, then those of the source or the preset."""

from pathlib import Path

import numpy as np
import pytest

from service.export.errors import ExportError
from service.export.labels import choose_labels, read_labels
from service.export.source import Known
from service.export.wishes import Wishes
from tests.service.export.stand_in import LinearSource

SCORES = [np.zeros((1, 3), np.float32)]


class Reader(LinearSource):
    def characters(self) -> list[str]:
        return ["a", "\u3000"]


def test_a_reader_has_the_characters_of_its_file() -> None:
    for wishes in (Wishes(preset="ppocr"), Wishes(task="ocr")):
        assert choose_labels(wishes, Reader(), SCORES) == (["a", "\u3000"], [])
    assert choose_labels(Wishes(), Reader(), SCORES) == ([], [])


def test_a_reader_whose_file_has_none_needs_them(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="does not say which characters it reads: --labels"):
        choose_labels(Wishes(preset="ppocr"), LinearSource(), SCORES)
    file = tmp_path / "characters.txt"
    file.write_text("b\n \n")
    assert choose_labels(Wishes(preset="ppocr", labels=str(file)), LinearSource(), SCORES)[0] == ["b", " "]
    file.write_text("b\n\nc")
    with pytest.raises(ExportError, match="line 2 is empty"):
        read_labels(str(file), are_characters=True)


def test_another_number_of_classes_than_those_of_the_preset_is_noted() -> None:
    labels, notes = choose_labels(Wishes(preset="imagenet"), LinearSource(), SCORES)
    assert labels == []
    assert "3 classes and no labels" in notes[0]


def test_labels_of_the_source_come_after_those_of_the_user(tmp_path: Path) -> None:
    source = LinearSource()
    source.known = Known(labels=["a", "b", "c"])
    (tmp_path / "names.txt").write_text("x\ny\nz\n")
    assert choose_labels(Wishes(), source, SCORES) == (["a", "b", "c"], [])
    assert choose_labels(Wishes(labels=str(tmp_path / "names.txt")), source, SCORES)[0] == ["x", "y", "z"]
    source.known = Known(labels=["a", "b"])
    labels, notes = choose_labels(Wishes(), source, SCORES)
    assert labels == []
    assert "names 2 classes and has 3; --labels" in notes[0]
    maps = [np.zeros((1, 3, 4, 4), np.float32)]
    assert choose_labels(Wishes(), source, maps)[0] == ["a", "b"]  # what is no list of classes is not counted
