"""How a model's folder comes to its place."""

from pathlib import Path

import pytest

from service.export.errors import ExportError
from service.export.folder import check_place, staged
from tests.service.export.stand_in import names_in


def fill(folder: Path, text: str) -> None:
    (folder / "a.txt").write_text(text)


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with staged(tmp_path / "models" / "net", force=False) as made:
        fill(made, "new")
        assert names_in(tmp_path / "models") == [made.parent.name]
        assert made.parent.name.startswith(".")  # folders that begin with a dot are not served
    assert names_in(tmp_path / "models") == ["net"]
    assert (tmp_path / "models" / "net" / "a.txt").read_text() == "new"


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_replaces_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr("service.export.folder._exchanged", lambda one, other: False)
    (tmp_path / "net").mkdir()
    fill(tmp_path / "net", "old")
    with staged(tmp_path / "net", force=True) as made:
        fill(made, "new")
        assert (tmp_path / "net" / "a.txt").read_text() == "old"
    assert (tmp_path / "net" / "a.txt").read_text() == "new"
    assert names_in(tmp_path) == ["net"]


def fail_in(folder: Path) -> None:
    with staged(folder, force=False) as made:
        fill(made, "half")
        raise KeyError


def test_nothing_is_left_of_what_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fail_in(tmp_path / "net")
    assert names_in(tmp_path) == []


def come_meanwhile(folder: Path) -> None:
    with staged(folder, force=False) as made:
        fill(made, "new")
        folder.mkdir()
        fill(folder, "other")


def test_a_model_that_came_meanwhile_stays(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="exists; --force replaces it"):
        come_meanwhile(tmp_path / "net")
    assert (tmp_path / "net" / "a.txt").read_text() == "other"
    assert names_in(tmp_path) == ["net"]


def test_names_that_are_not_served_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="folders that begin with a dot are not served"):
        check_place(tmp_path / ".net", force=True)


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "net").write_text("mine")
    with pytest.raises(ExportError, match="is a file; expected a folder"):
        check_place(tmp_path / "net", force=True)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    with (
        pytest.raises(ExportError, match="models cannot be written: "),
        staged(tmp_path / "models" / "net", force=False),
    ):
        pass


@pytest.mark.parametrize("name", ["my net", "m\u00f6del", "net@2"])
def test_a_name_that_servers_refuse_is_refused_here(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError, match=r"not a model name: expected letters.*--name"):
        check_place(tmp_path / name, force=False)
