"""Finds models in a folder: which subfolders are models and versions, and which two files make up a model.

models/digits/digits.param, digits.bin                  one model, version 1
models/resnet/1/…, models/resnet/2/…, model.toml        two versions, each a .param and a .bin
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MODEL_NAME = re.compile(r"[A-Za-z0-9._-]+")
"""Names that a model may have: without characters that mean something in a path or a URL."""
ONLY_VERSION = "1"
"""The version of a model that has no version folders."""
_NOT_MODELS = frozenset({"lost+found", "__pycache__"})
_VERSION = re.compile(r"[0-9]+")
_SOUND_VERSION = re.compile(r"[1-9][0-9]{0,17}")


class ModelFilesError(Exception):
    """A folder does not hold the files of a model."""


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


def model_folders(root: Path) -> dict[str, Path]:
    """Return the models under `root` by name, in order of name.

    If `root` itself holds a `.param` file, or versions of one model and no other models, it is a single model, named
    like the folder. Otherwise each subfolder that is not hidden is a model.

    Raises:
        ModelFilesError: the folder does not exist or holds no model.
    """
    if not root.is_dir():
        raise ModelFilesError(f"there is no folder {root}; --models names the folder of your models")
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not _is_hidden(path))
    if _params(root) or _are_versions(folders):
        return {root.resolve().name: root}
    if not folders:
        raise ModelFilesError(
            f"no models in {root}: expected folders that each hold a .param and a .bin file"
        )
    return {folder.name: folder for folder in folders}


def check_name(name: str) -> None:
    """Check the name of a model.

    Raises:
        ModelFilesError: the name is invalid.
    """
    if not MODEL_NAME.fullmatch(name):
        raise ModelFilesError(f"{name!r} is no name for a model; expected letters, digits, '.', '_' and '-'")


def version_folders(folder: Path) -> dict[str, Path]:
    """Return the versions of a model by number, lowest first: its numeric subfolders, or the folder as version 1.

    Raises:
        ModelFilesError: a version has leading zeros or too many digits, or there are model files beside the version
            folders, so that it is unclear which are meant.
    """
    found = _version_folders(folder)
    for path in found:
        if not _SOUND_VERSION.fullmatch(path.name):
            raise ModelFilesError(
                f"{path.name!r} is no version; expected numbers from 1, up to 18 digits, without leading zeros"
            )
    beside = _params(folder) + _with_suffix(folder, ".bin")
    if found and beside:
        raise ModelFilesError(
            f"{_listing(beside)} beside the version folders {_listing(found)}; expected the files of each version "
            "in its folder, or no version folders"
        )
    return {path.name: path for path in found} or {ONLY_VERSION: folder}


def find_files(folder: Path) -> ModelFiles:
    """Return the pair of files in the folder of a model or a version.

    `.ncnn.param` and `.ncnn.bin` are ignored: the exporter writes them beside its own files, in another format.

    Raises:
        ModelFilesError: the folder does not hold exactly one pair.
    """
    params, bins = _params(folder), _with_suffix(folder, ".bin")
    pairs = [(param, param.with_suffix(".bin")) for param in params if param.with_suffix(".bin") in bins]
    if not pairs and len(params) == len(bins) == 1:
        pairs = [(params[0], bins[0])]
    if len(pairs) != 1:
        raise ModelFilesError(
            f"expected one .param and one .bin file, found {_listing(params)} and {_listing(bins)}"
        )
    return ModelFiles(folder, *pairs[0])


def _version_folders(folder: Path) -> list[Path]:
    found = (path for path in folder.iterdir() if _VERSION.fullmatch(path.name) and path.is_dir())
    return sorted(found, key=lambda path: (len(path.name), path.name))


def _are_versions(folders: Sequence[Path]) -> bool:
    """Return whether folders are versions of one model: only those whose names are numbers hold model files."""
    numbers = [folder for folder in folders if _VERSION.fullmatch(folder.name)]
    if not any(map(_params, numbers)):
        return False
    others = (folder for folder in folders if folder not in numbers)
    return not any(_params(other) or _version_folders(other) for other in others)


def _params(folder: Path) -> list[Path]:
    return _with_suffix(folder, ".param")


def _with_suffix(folder: Path, suffix: str) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix == suffix
        and not path.name.startswith(".")
        and not path.stem.endswith(".ncnn")
        and path.is_file()
    )


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name in _NOT_MODELS


def _listing(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths) or "none"
