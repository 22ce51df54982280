from pathlib import Path

import pytest

from service.model_files import ModelFilesError, find_files, model_folders


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


def test_each_sub_folder_is_a_model(tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden", "__pycache__", "lost+found"):
        (tmp_path / name).mkdir()
    (tmp_path / "README.md").touch()
    assert list(model_folders(tmp_path).items()) == [("a", tmp_path / "a"), ("b", tmp_path / "b")]


def test_folder_of_one_model_may_be_given_itself(tmp_path: Path) -> None:
    folder = touch(tmp_path / "digits", "digits.param", "digits.bin")
    (folder / "samples").mkdir()
    assert model_folders(folder) == {"digits": folder}


def test_folder_given_as_a_dot_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(touch(tmp_path / "digits", "m.param", "m.bin"))
    assert list(model_folders(Path())) == ["digits"]


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFilesError, match=r"there is no folder .*nowhere; --models names"):
        model_folders(tmp_path / "nowhere")


def test_folder_without_models_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFilesError, match="no models in .*: expected folders that each hold"):
        model_folders(touch(tmp_path / "empty", "README.md"))


@pytest.mark.parametrize(
    ("names", "param", "binary"),
    [
        (("m.param", "m.bin"), "m.param", "m.bin"),
        (("m.pnnx.param", "m.pnnx.bin", "m_pnnx.py"), "m.pnnx.param", "m.pnnx.bin"),
        (("m.pnnx.param", "m.pnnx.bin", "m.ncnn.param", "m.ncnn.bin"), "m.pnnx.param", "m.pnnx.bin"),
        (("graph.param", "weights.bin"), "graph.param", "weights.bin"),
        (("m.param", "m.bin", "other.bin"), "m.param", "m.bin"),
        (("m.param", "m.bin", "old.param"), "m.param", "m.bin"),
        (("m.param", "m.bin", ".m.param"), "m.param", "m.bin"),
    ],
)
def test_pair_is_found(tmp_path: Path, names: tuple[str, ...], param: str, binary: str) -> None:
    folder = touch(tmp_path / "m", *names)
    files = find_files(folder)
    assert (files.folder, files.param, files.bin) == (folder, folder / param, folder / binary)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ((), "found none and none"),
        (("m.param",), "found m.param and none"),
        (("m.bin",), "found none and m.bin"),
        (("m.param", "a.bin", "b.bin"), "found m.param and a.bin, b.bin"),
        (("a.param", "a.bin", "b.param", "b.bin"), "found a.param, b.param and a.bin, b.bin"),
    ],
)
def test_anything_but_one_pair_is_an_error(tmp_path: Path, names: tuple[str, ...], found: str) -> None:
    with pytest.raises(ModelFilesError, match=f"expected one .param and one .bin file, {found}$"):
        find_files(touch(tmp_path / "m", *names))


@pytest.mark.parametrize("name", ["my model", "a&b", "modèle"])
def test_name_that_a_url_would_mangle_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFilesError, match=f"'{name}' is no name for a model"):
        find_files(touch(tmp_path / name, "m.param", "m.bin"))
