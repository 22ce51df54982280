"""Which objects are which models, and names that cannot be those of files."""

import pytest

from service.config.store_url import StoreUrl
from service.repository.files import ModelFilesError
from service.repository.fingerprint import FileMark, Fingerprint
from service.repository.model_source import SourceError
from service.stores import model_paths
from service.stores.model_paths import check_paths, models_of

URL = StoreUrl("s3", "bucket", "some/place")


def marks(*paths: str) -> Fingerprint:
    return frozenset(FileMark(path, 1, "t") for path in paths)


def models(*paths: str, single: str | None = None) -> dict[str, tuple[str, set[str]]]:
    found = models_of(marks(*paths), URL, single)
    return {name: (prefix, {file.path for file in files}) for name, (prefix, files) in found.items()}


def test_each_folder_is_a_model() -> None:
    assert models("a/x.param", "a/x.bin", "b/1/x.param", "b/2/x.param", "README.md", "b/") == {
        "a": ("a/", {"x.param", "x.bin"}),
        "b": ("b/", {"1/x.param", "2/x.param"}),
    }


@pytest.mark.parametrize(
    "paths",
    [("x.param", "x.bin", "samples/1.png"), ("1/x.param", "2/x.param", "model.toml", "samples/1.png")],
)
def test_files_at_the_top_are_one_model(paths: tuple[str, ...]) -> None:
    assert models(*paths) == {"place": ("", set(paths))}
    assert models(*paths, single="mine") == {"mine": ("", set(paths))}


def test_versions_beside_models_are_models() -> None:
    assert list(models("1/x.param", "a/x.param")) == ["1", "a"]
    assert list(models("x.ncnn.param", "a/x.param")) == ["a"]


@pytest.mark.parametrize("inside", ["a/x.param", "a/1/x.param"])
def test_a_file_beside_models_does_not_make_one_model_of_all(inside: str) -> None:
    with pytest.raises(
        SourceError,
        match=r"s3://bucket/some/place: 'stray\.param' is beside the models a; expected it in a folder",
    ):
        models("stray.param", inside, "c/readme.txt")


def test_a_name_is_for_a_single_model() -> None:
    assert models("a/x.param", single="mine") == {"mine": ("a/", {"x.param"})}
    with pytest.raises(SourceError, match="place: model_name is for a single model; there are 2"):
        models("a/x.param", "b/x.param", single="mine")


def test_hidden_files_and_those_that_stand_for_folders_are_left_out() -> None:
    assert models("a/x.param", "a/1", "a/1/x", "a/.git/x", ".b/x.param", "a/__pycache__/x", "a/s/") == {
        "a": ("a/", {"x.param", "1/x"})
    }


@pytest.mark.parametrize("paths", [(), ("x.txt",), (".a/x.param",)])
def test_a_place_without_models_is_an_error(paths: tuple[str, ...]) -> None:
    with pytest.raises(SourceError, match="s3://bucket/some/place: no models"):
        models(*paths)


def test_listings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_paths, "MAX_FILES", 1000)
    assert len(models(*(f"m{number}/x.param" for number in range(1000)))) == 1000
    endless = (FileMark(f"m{number}/x", 1, "t") for number in iter(int, 1))
    with pytest.raises(SourceError, match="place: more than 1000 files"):
        models_of(endless, URL, None)


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../x",
        "/x",
        "a//x",
        "./x",
        "a/.",
        "x\0y",
        "x\ny",
        "a\\..\\x",
        "\ud800",
        "x" * 256,
        "é" * 128,
        "",
    ],
)
def test_names_that_are_no_files_are_refused(path: str) -> None:
    with pytest.raises(ModelFilesError, match="cannot be the name of a file here"):
        check_paths("m", marks("model.param", path))


@pytest.mark.parametrize("name", ["..", ".", "a b", "é", "a\0", ""])
def test_models_have_names_that_fit_a_url(name: str) -> None:
    with pytest.raises(ModelFilesError, match="is not a model name"):
        check_paths(name, marks("model.param"))


def test_sound_names_pass() -> None:
    check_paths("m", marks("1/model.param", "samples/a b (1) é.png", "labels.txt", "x" * 255))
