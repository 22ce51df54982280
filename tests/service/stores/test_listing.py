"""Which objects are which models, and names that cannot be those of files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.repository.fingerprint import FileMark
from service.repository.model_source import SourceError
from service.stores import store_source
from service.stores.file_pool import FilePool
from service.stores.store_source import StoreSource
from tests.service.stores.buckets import MAX_BYTES, URL


class Listing:
    """A store of files that hold one byte."""

    def __init__(self, *paths: str) -> None:
        self._paths = paths

    def list(self) -> Iterator[FileMark]:
        for path in self._paths:
            yield FileMark(path, 1, "t")

    def read(self, _: FileMark) -> Iterator[bytes]:
        yield b"x"


def models(tmp_path: Path, *paths: str, name: str | None = None) -> dict[str, set[str]]:
    source = StoreSource(Listing(*paths), URL, FilePool(tmp_path / "cache", MAX_BYTES), name)
    return {model: {file.path for file in files} for model, files in source.list().items()}


def test_each_folder_is_a_model(tmp_path: Path) -> None:
    found = models(tmp_path, "a/x.param", "a/x.bin", "b/1/x.param", "b/2/x.param", "README.md", "b/")
    assert found == {"a": {"x.param", "x.bin"}, "b": {"1/x.param", "2/x.param"}}


@pytest.mark.parametrize(
    "paths",
    [("x.param", "x.bin", "samples/1.png"), ("1/x.param", "2/x.param", "model.toml", "samples/1.png")],
)
def test_files_at_the_top_are_one_model(tmp_path: Path, paths: tuple[str, ...]) -> None:
    assert models(tmp_path, *paths) == {"models": set(paths)}
    assert models(tmp_path, *paths, name="mine") == {"mine": set(paths)}


def test_a_file_beside_models_does_not_make_one_model_of_all(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"stray\.param in s3://bucket/models beside the models a;"):
        models(tmp_path, "stray.param", "a/x.param", "c/readme.txt")


def test_a_name_is_for_a_single_model(tmp_path: Path) -> None:
    assert models(tmp_path, "a/x.param", name="mine") == {"mine": {"x.param"}}
    with pytest.raises(SourceError, match="model_name is for a single model; s3://bucket/models holds 2"):
        models(tmp_path, "a/x.param", "b/x.param", name="mine")


def test_hidden_files_and_those_that_stand_for_folders_are_left_out(tmp_path: Path) -> None:
    paths = ("a/x.param", "a/1", "a/1/x", "a/.git/x", ".b/x.param", "a/__pycache__/x", "a/s/", "")
    assert models(tmp_path, *paths) == {"a": {"x.param", "1/x"}}


@pytest.mark.parametrize("path", ["../x", "a/../x", "./x", "a/.", "../../x.param"])
def test_paths_that_lead_elsewhere_are_left_out(tmp_path: Path, path: str) -> None:
    assert models(tmp_path, "m/model.param", f"m/{path}", path) == {"m": {"model.param"}}
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize("paths", [(), ("x.txt",), (".a/x.param",)])
def test_a_place_without_models_is_an_error(tmp_path: Path, paths: tuple[str, ...]) -> None:
    with pytest.raises(SourceError, match="no models.*: expected folders that each hold a .param") as caught:
        models(tmp_path, *paths)
    assert str(URL) in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_listings_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_source, "MAX_FILES", 100)
    assert len(models(tmp_path, *(f"m{number}/x.param" for number in range(100)))) == 100
    with pytest.raises(SourceError, match="models: more than 100 files"):
        models(tmp_path, *(f"m{number}/x.param" for number in range(101)))


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "a//x",
        "x\0y",
        "x\ny",
        "a\\..\\x",
        "\ud800",
    ],
)
def test_names_that_are_no_files_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(SourceError, match="s3://bucket/models: .* cannot be the name of a file here"):
        models(tmp_path, "m/model.param", f"m/{path}")
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize("path", ["x" * 256, "é" * 128])
def test_names_that_are_too_long_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(SourceError, match="s3://bucket/models cannot be cached: File name too long"):
        models(tmp_path, "m/model.param", f"m/{path}")


def test_sound_names_pass(tmp_path: Path) -> None:
    paths = {"1/model.param", "samples/a b (1) é.png", "labels.txt", "x" * 255}
    assert models(tmp_path, *(f"m/{path}" for path in paths)) == {"m": paths}
