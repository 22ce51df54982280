from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.repository.files import ModelFilesError, check_name, find_files, model_folders, version_folders


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


@pytest.mark.parametrize("name", ["my model", "a&b", "modèle", "a/b", ""])
def test_name_that_a_url_would_mangle_is_an_error(name: str) -> None:
    with pytest.raises(ModelFilesError, match=f"'{name}' is no name for a model"):
        check_name(name)


def test_model_without_version_folders_is_version_one(tmp_path: Path) -> None:
    folder = touch(tmp_path / "m", "m.param", "m.bin")
    touch(folder / "samples", "1.png")
    assert version_folders(folder) == {"1": folder}


def test_versions_are_numeric_folders_lowest_first(tmp_path: Path) -> None:
    for name in ("10", "9", "2", "samples", "v3", ".4"):
        (tmp_path / name).mkdir()
    touch(tmp_path, "5", "model.toml", "labels.txt")
    assert list(version_folders(tmp_path).items()) == [(n, tmp_path / n) for n in ("2", "9", "10")]


@pytest.mark.parametrize("name", ["01", "0", "007", "1" * 19])
def test_version_spelled_otherwise_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / name).mkdir()
    with pytest.raises(ModelFilesError, match=f"'{name}' is no version; expected numbers from 1"):
        version_folders(tmp_path)


@pytest.mark.parametrize("name", ["m.param", "m.bin"])
def test_files_beside_version_folders_are_an_error(tmp_path: Path, name: str) -> None:
    touch(tmp_path, name)
    for version in ("1", "2"):
        touch(tmp_path / version, "m.param", "m.bin")
    with pytest.raises(ModelFilesError, match=f"^{name} beside the version folders 1, 2; expected"):
        version_folders(tmp_path)


def test_folder_of_one_model_with_versions_may_be_given_itself(tmp_path: Path) -> None:
    root = tmp_path / "digits"
    for version in ("1", "2"):
        touch(root / version, "m.param", "m.bin")
    touch(root / "samples", "1.png")
    assert model_folders(root) == {"digits": root}


@pytest.mark.parametrize("other", ["resnet", "resnet/1"])
def test_number_beside_other_models_is_a_model(tmp_path: Path, other: str) -> None:
    for name in ("1", other):
        touch(tmp_path / name, "m.param", "m.bin")
    assert list(model_folders(tmp_path)) == ["1", "resnet"]


@given(names=st.sets(st.text("0123456789av._-²٣", min_size=1, max_size=20).filter(lambda n: n.strip("."))))
def test_folders_are_versions_or_left_aside_or_refused(names: set[str]) -> None:
    numbers = {name for name in names if set(name) <= set("0123456789")}
    sound = {name for name in numbers if int(name) < 10**18 and str(int(name)) == name != "0"}
    with TemporaryDirectory() as root:
        for name in names:
            (Path(root) / name).mkdir()
        if numbers != sound:
            with pytest.raises(ModelFilesError, match="is no version"):
                version_folders(Path(root))
        elif numbers:
            assert list(version_folders(Path(root))) == sorted(numbers, key=int)
        else:
            assert version_folders(Path(root)) == {"1": Path(root)}
