"""Model files of a folder: a `.param` and a `.bin`, or such a pair in each of several version folders.

models/digits/digits.param, digits.bin                  one model, version 1
models/resnet/1/…, models/resnet/2/…, model.toml        two versions, each a .param and a .bin
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InputError, ModelFilesError

ONLY_VERSION = "1"
"""The version of a model that has no version folders."""
_NOT_MODELS = frozenset({"lost+found", "__pycache__"})
_MAX_LISTED = 8
"""Names in a message: it is shown to clients."""
_VERSION = re.compile(r"[0-9]+")
_SOUND_VERSION = re.compile(r"[1-9][0-9]{0,17}")
_EXPORTER = ".pnnx"
"""The exporter's infix in the names of both files; a renamed file may lack it."""
_CONVERTED = {
    ".pt": "pnnx {name} 'inputshape=[1,3,224,224]'",
    ".pth": "load it in PyTorch, save it by torch.jit.trace(…).save('{stem}.pt'), then run pnnx {stem}.pt",
    ".torchscript": "pnnx {name} 'inputshape=[1,3,224,224]'",
    ".pt2": "pnnx {name}",
    ".onnx": "pnnx {name} 'inputshape=[1,3,224,224]'",
}
"""Suffixes of models that the exporter reads, with how the files are made of them."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of one model.

    Attributes:
        folder: the folder that holds them.
        param: the `.param` file.
        bin: the `.bin` file.
    """

    folder: Path
    param: Path
    bin: Path


def find_files(folder: Path) -> ModelFiles:
    """Return the pair of files in the folder of a model or a version.

    The two belong together if their names differ in the suffix alone, or in `.pnnx` besides (`x.param` and
    `x.pnnx.bin`); if there is only one of each, whatever their names. `.ncnn.param` and `.ncnn.bin` are ignored: the
    exporter writes them beside its own files, in another format.

    Raises:
        ModelFilesError: the folder does not hold exactly one pair; the message lists its files and a fix.
        OSError: the folder cannot be read.
    """
    params, bins = _param_files(folder), _bin_files(folder)
    pairs = _pairs(params, bins)
    if not pairs and len(params) == len(bins) == 1:
        pairs = [(params[0], bins[0])]
    if len(pairs) != 1:
        found = f"expected one .param and one .bin file, found {_listing(params)} and {_listing(bins)}"
        raise ModelFilesError(found + ("" if params or bins else _cure(folder) or _models_within(folder)))
    return ModelFiles(folder, *pairs[0])


def model_folders(root: Path) -> dict[str, Path]:
    """Return the models under `root` by name, in order of name.

    If `root` itself holds a `.param` file, or versions of one model and no other models, it is a single model, named
    like the folder. Otherwise each subfolder that is not hidden is a model. Bytes of its name that are not UTF-8 are
    escaped.

    Raises:
        ModelFilesError: the folder does not exist, holds no model, or a `.param` file beside the folders of models.
        OSError: the folder cannot be read.
    """
    if not root.is_dir():
        what = f"{root} is a file" if root.is_file() else f"there is no folder {root}"
        raise ModelFilesError(f"{what}; --models names the folder of your models")
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not _is_hidden(path))
    params = _param_files(root)
    models = [path for path in folders if not _is_number(path) and _is_model(path)]
    if params and models:
        raise ModelFilesError(
            f"{_listing(params)} in {root} beside the models {_listing(models)}; {_own_folder(root, params[0])}"
        )
    pairs = _pairs(params, _bin_files(root))
    if len(pairs) > 1:
        raise ModelFilesError(
            f"{_listing(params)} in {root} are several models; {_own_folder(root, params[0])}"
        )
    if params or _are_versions(folders):
        return {shown_name(root.resolve()): root}
    if not folders:
        what = "no models in {}: expected folders that each hold a .param and a .bin file"
        raise ModelFilesError(what.format(root) + _cure(root))
    return {shown_name(folder): folder for folder in folders}


def stray_files(root: Path) -> list[str]:
    """Return what lies in a folder of models without being served, and what can be done about it, a sentence each."""
    return [
        f"{shown_name(path)} in the folder of models is not served; a model has a folder of its own"
        + _cure_of(path)
        for path in sorted(root.iterdir())
        if path.suffix in (".param", ".bin", *_CONVERTED) and not path.name.startswith(".") and path.is_file()
    ]


def bin_beside(param: Path) -> Path:
    """Return the `.bin` that belongs to a `.param`, by its name; the one that is expected if there is none."""
    expected = param.with_suffix(".bin")
    stem = _stem(param)
    for name in (expected.name, f"{stem}{_EXPORTER}.bin", f"{stem}.bin"):
        if param.with_name(name).is_file():
            return param.with_name(name)
    return expected


def files_at(model: Path) -> tuple[Path, Path]:
    """Return the `.param` and the `.bin` of a model that is named by its `.param` or its folder.

    Of a folder of versions they are those of the highest.

    Raises:
        InputError: the folder does not hold the files of one model.
    """
    if not model.is_dir():
        return model, bin_beside(model)
    try:
        *_, folder = version_folders(model).values()
        files = find_files(folder)
    except ModelFilesError as error:
        raise InputError(f"{model}: {error}") from error
    return files.param, files.bin


def version_folders(folder: Path) -> dict[str, Path]:
    """Return the versions of a model by number, lowest first: its numeric subfolders, or the folder as version 1.

    Raises:
        ModelFilesError: a version has leading zeros or too many digits, or there are model files beside the version
            folders, so that it is unclear which are meant.
        OSError: the folder cannot be read.
    """
    found = _numeric_folders(folder)
    for path in found:
        if not _SOUND_VERSION.fullmatch(path.name):
            raise ModelFilesError(
                f"{path.name!r} is not a version; expected numbers from 1, up to 18 digits, without leading zeros"
            )
    beside = _param_files(folder) + _bin_files(folder)
    if found and beside:
        raise ModelFilesError(
            f"{_listing(beside)} beside the version folders {_listing(found)}; expected the files of each version "
            "in its folder, or no version folders"
        )
    return {path.name: path for path in found} or {ONLY_VERSION: folder}


def _param_files(folder: Path) -> list[Path]:
    """Return the `.param` files of a folder, by name."""
    return _with_suffix(folder, ".param")


def _bin_files(folder: Path) -> list[Path]:
    """Return the `.bin` files of a folder, by name."""
    return _with_suffix(folder, ".bin")


def _numeric_folders(folder: Path) -> list[Path]:
    """Return the subfolders that are called by a number, lowest first."""
    found = (path for path in folder.iterdir() if _is_number(path) and path.is_dir())
    return sorted(found, key=lambda path: (len(path.name), path.name))


def _is_number(folder: Path) -> bool:
    """Return whether a folder is called by a number, as those of versions are."""
    return _VERSION.fullmatch(folder.name) is not None


def _cure(folder: Path) -> str:
    """Return what can be done with the models of other kinds in a folder, as "; …"; empty where there are none."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return next(filter(None, map(_cure_of, files)), "")


def _cure_of(path: Path) -> str:
    name = shown_name(path)
    if path.suffix in _CONVERTED:
        how = _CONVERTED[path.suffix].format(name=name, stem=name.removesuffix(path.suffix))
        return f"; {name} is not a PNNX model, pnnx makes one of it: {how}"
    if path.stem.endswith(".ncnn") and path.suffix in (".param", ".bin"):
        return f"; {name} is for ncnn, pnnx writes .pnnx.param and .pnnx.bin beside it"
    return ""


def _models_within(folder: Path) -> str:
    models = [path for path in sorted(folder.iterdir()) if path.is_dir() and _is_model(path)]
    return f"; it is a folder of models: {_listing(models)}" if models else ""


def _is_model(folder: Path) -> bool:
    return bool(_param_files(folder)) or any(map(_param_files, _numeric_folders(folder)))


def _are_versions(folders: Sequence[Path]) -> bool:
    """Return whether folders are versions of one model: only those whose names are numbers hold model files."""
    if not any(_param_files(folder) for folder in folders if _is_number(folder)):
        return False
    others = (folder for folder in folders if not _is_number(folder))
    return not any(_param_files(other) or _numeric_folders(other) for other in others)


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name in _NOT_MODELS


def _listing(paths: Sequence[Path]) -> str:
    """Return the names of files or folders for a message, "none" where there are none."""
    more = f" and {len(paths) - _MAX_LISTED} more" if len(paths) > _MAX_LISTED else ""
    return (", ".join(map(shown_name, paths[:_MAX_LISTED])) or "none") + more


def shown_name(path: Path) -> str:
    """Return the name of a file or folder as text that can be shown and encoded.

    Bytes that are not UTF-8, and control characters, are escaped.
    """
    name = path.name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def _own_folder(root: Path, param: Path) -> str:
    return f"expected a folder of its own for each model, as {root / shown_name(param).partition('.')[0]}{os.sep}"


def _pairs(params: Sequence[Path], bins: Sequence[Path]) -> list[tuple[Path, Path]]:
    return _same_names(params, bins) or _same_stems(params, bins)


def _same_names(params: Iterable[Path], bins: Sequence[Path]) -> list[tuple[Path, Path]]:
    return [(param, param.with_suffix(".bin")) for param in params if param.with_suffix(".bin") in bins]


def _same_stems(params: Iterable[Path], bins: Sequence[Path]) -> list[tuple[Path, Path]]:
    return [(param, path) for param in params for path in bins if _stem(param) == _stem(path)]


def _stem(path: Path) -> str:
    return path.stem.removesuffix(_EXPORTER)


def _with_suffix(folder: Path, suffix: str) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix == suffix
        and not path.name.startswith(".")
        and not path.stem.endswith(".ncnn")
        and path.is_file()
    )
