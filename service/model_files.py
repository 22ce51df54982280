"""Finds models in a folder: which sub-folders are models, and which two of a folder's files are the model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MODEL_NAME = re.compile(r"[A-Za-z0-9._-]+")
"""What a model may be called: nothing that a path or a URL takes for its own."""
_NOT_MODELS = frozenset({"lost+found", "__pycache__"})


class ModelFilesError(Exception):
    """A folder does not hold what makes a model."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of one model.

    Attributes:
        folder: where they are.
        param: the `.param` file.
        bin: the `.bin` file.
    """

    folder: Path
    param: Path
    bin: Path


def model_folders(root: Path) -> dict[str, Path]:
    """Return the models under `root` by name, in order of name.

    A `root` that holds a `.param` file itself is one model, called as the folder is. Otherwise each sub-folder is
    one, hidden ones excepted.

    Raises:
        ModelFilesError: there is no such folder, or it holds no model.
    """
    if not root.is_dir():
        raise ModelFilesError(f"there is no folder {root}; --models names the folder of your models")
    if _params(root):
        return {root.resolve().name: root}
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not _is_hidden(path))
    if not folders:
        raise ModelFilesError(
            f"no models in {root}: expected folders that each hold a .param and a .bin file"
        )
    return {folder.name: folder for folder in folders}


def find_files(folder: Path) -> ModelFiles:
    """Return the one pair of files in a model's folder.

    `.ncnn.param` and `.ncnn.bin` are left aside: the exporter writes them next to its own files, in another format.

    Raises:
        ModelFilesError: the folder's name is none for a model, or not exactly one pair is there.
    """
    name = folder.resolve().name
    if not MODEL_NAME.fullmatch(name):
        raise ModelFilesError(f"{name!r} is no name for a model; expected letters, digits, '.', '_' and '-'")
    params, bins = _params(folder), _with_suffix(folder, ".bin")
    pairs = [(param, param.with_suffix(".bin")) for param in params if param.with_suffix(".bin") in bins]
    if not pairs and len(params) == len(bins) == 1:
        pairs = [(params[0], bins[0])]
    if len(pairs) != 1:
        raise ModelFilesError(
            f"expected one .param and one .bin file, found {_listing(params)} and {_listing(bins)}"
        )
    return ModelFiles(folder, *pairs[0])


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
