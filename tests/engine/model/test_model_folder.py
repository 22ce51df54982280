import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelFilesError
from engine.model.model_folder import (
    bin_beside,
    find_files,
    model_folders,
    shown_name,
    stray_files,
    version_folders,
)


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
        (("m.param", "m.pnnx.bin", "other.bin"), "m.param", "m.pnnx.bin"),
        (("m.pnnx.param", "m.bin", "other.param"), "m.pnnx.param", "m.bin"),
        (("m.param", "m.bin", "m.pnnx.bin"), "m.param", "m.bin"),
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
    with pytest.raises(ModelFilesError, match=f"'{name}' is not a version; expected numbers from 1"):
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
            with pytest.raises(ModelFilesError, match="is not a version"):
                version_folders(Path(root))
        elif numbers:
            assert list(version_folders(Path(root))) == sorted(numbers, key=int)
        else:
            assert version_folders(Path(root)) == {"1": Path(root)}


@pytest.mark.parametrize(
    ("names", "cure"),
    [
        (
            ("m.pt", "README.md"),
            "m.pt is not a PNNX model, pnnx makes one of it: pnnx m.pt 'inputshape=[1,3,224,224]'",
        ),
        (
            ("m.onnx",),
            "m.onnx is not a PNNX model, pnnx makes one of it: pnnx m.onnx 'inputshape=[1,3,224,224]'",
        ),
        (
            ("m.pth",),
            "m.pth is not a PNNX model, pnnx makes one of it: load it in PyTorch, "
            "save it by torch.jit.trace(…).save('m.pt'), then run pnnx m.pt",
        ),
        (
            ("m.ncnn.bin", "m.ncnn.param"),
            "m.ncnn.bin is for ncnn, pnnx writes .pnnx.param and .pnnx.bin beside it",
        ),
    ],
)
def test_model_of_another_kind_is_reported_with_the_cure(
    tmp_path: Path, names: tuple[str, ...], cure: str
) -> None:
    folder = touch(tmp_path / "m", *names)
    for find, problem in ((find_files, "found none and none"), (model_folders, "no models in ")):
        with pytest.raises(ModelFilesError) as caught:
            find(folder)
        reported = str(caught.value)
        assert problem in reported
        assert reported.endswith(f"; {cure}")


def test_file_beside_the_folders_of_models_is_reported(tmp_path: Path) -> None:
    touch(tmp_path / "digits", "m.param", "m.bin")
    touch(tmp_path, "new.pt", "README.md", ".hidden.param", "old.bin")
    assert list(model_folders(tmp_path)) == ["digits"]
    lost, raw = stray_files(tmp_path)
    assert lost.startswith(
        "new.pt in the folder of models is not served; a model has a folder of its own; new.pt is"
    )
    assert raw == "old.bin in the folder of models is not served; a model has a folder of its own"
    touch(tmp_path, "new.pnnx.param")
    with pytest.raises(
        ModelFilesError, match=r"^new.pnnx.param in .* beside the models digits; .*, as .*/new/$"
    ):
        model_folders(tmp_path)


def test_several_models_in_one_folder_are_distinguished(tmp_path: Path) -> None:
    folder = touch(tmp_path / "one", "a.param", "a.bin", "b.pnnx.param", "c.param")
    assert list(model_folders(folder)) == ["one"]
    touch(folder, "b.pnnx.bin")
    with pytest.raises(
        ModelFilesError, match=r"^a.param, b.pnnx.param, c.param in .* several models; .*, as .*/a/$"
    ):
        model_folders(folder)


def test_message_does_not_grow_with_the_folder(tmp_path: Path) -> None:
    touch(tmp_path, "m.param", *(f"{number:03}.bin" for number in range(100)))
    with pytest.raises(ModelFilesError, match=r"found m.param and 000.bin, .*, 007.bin and 92 more$"):
        find_files(tmp_path)


def test_file_in_the_place_of_a_folder_is_said(tmp_path: Path) -> None:
    touch(tmp_path, "m.param")
    with pytest.raises(ModelFilesError, match=r"m\.param is a file; --models names"):
        model_folders(tmp_path / "m.param")


def test_bin_of_a_param_file_is_found_by_its_name(tmp_path: Path) -> None:
    assert bin_beside(tmp_path / "m.pnnx.param") == tmp_path / "m.pnnx.bin"
    touch(tmp_path, "m.bin")
    assert bin_beside(tmp_path / "m.pnnx.param") == tmp_path / "m.bin"
    touch(tmp_path, "m.pnnx.bin")
    assert bin_beside(tmp_path / "m.pnnx.param") == tmp_path / "m.pnnx.bin"
    assert bin_beside(tmp_path / "m.param") == tmp_path / "m.bin"


def test_names_can_be_shown_whatever_their_bytes(tmp_path: Path) -> None:
    for name in (b"caf\xe9", "modèle".encode(), b"a\x1b[2J"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).mkdir()
    shown = list(model_folders(tmp_path))
    assert shown == ["a\\x1b[2J", "caf\\xe9", "modèle"]
    assert shown_name(tmp_path / "plain name") == "plain name"


def test_pipes_are_no_model_files(tmp_path: Path) -> None:
    for name in ("m.param", "m.bin"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(ModelFilesError, match="found none and none"):
        find_files(tmp_path)
