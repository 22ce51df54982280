"""Which files of a listing are which models, and which of their names can be those of files here."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from service.repository.files import ModelFilesError, check_name
from service.repository.fingerprint import FileMark, Fingerprint
from service.repository.model_source import SourceError

MOST_FILES = 100_000
"""Files of a store that are listed; below a place with more, there are other things than models."""
_MOST_DEPTH = 8
_MOST_NAME_BYTES = 255
_NOT_MODELS = frozenset({"lost+found", "__pycache__"})


class ListedModel(NamedTuple):
    """A model of a listing.

    Attributes:
        prefix: where its files are below the place; empty, or with a slash at the end.
        files: its files, with paths relative to it.
    """

    prefix: str
    files: Fingerprint


def models_of(files: Iterable[FileMark], name: str, single: str | None) -> dict[str, ListedModel]:
    """Return each model by its name, in order of name.

    As in a folder of this machine: where a `.param` file lies at the top, or versions of one model and no other
    models, all of it is one model; otherwise each folder is one. What is hidden is left out.

    Args:
        files: all files of a place.
        name: what the place is called.
        single: what a single model is to be called; None for `name`.

    Raises:
        SourceError: there is no model, there are too many files, several models where one is to have a name, or a
            `.param` file beside the folders of models.
    """
    listed = _visible(files)
    folders: dict[str, list[FileMark]] = defaultdict(list)
    top = [file for file in listed if "/" not in file.path]
    for file in listed:
        folder, _, rest = file.path.partition("/")
        if rest:
            folders[folder].append(file._replace(path=rest))
    params = sorted(file.path for file in top if _is_param(file.path))
    beside = sorted(folder for folder, held in folders.items() if not folder.isdecimal() and _is_model(held))
    if params and beside:  # else the models would be gone because somebody put one file in the wrong place
        raise SourceError(f"{params[0]!r} is beside the models {', '.join(beside)}; expected it in a folder")
    if params or _are_versions(folders):
        return {single or name: ListedModel("", frozenset(_without_markers(listed)))}
    models = {
        folder: ListedModel(f"{folder}/", frozenset(_without_markers(held)))
        for folder, held in sorted(folders.items())
    }
    models = {folder: model for folder, model in models.items() if model.files}
    if not models:
        raise SourceError("no models: expected folders that each hold a .param and a .bin file")
    if single is not None:
        if len(models) > 1:
            raise SourceError(f"model_name is for a single model; there are {len(models)}")
        return {single: next(iter(models.values()))}
    return models


def check_paths(name: str, files: Fingerprint) -> None:
    """Check that the files of a model can be written to a folder, each to a place of its own within it.

    Raises:
        ModelFilesError: a name is no name of a file, or two are one on some file systems.
    """
    check_name(name)
    if name in (".", ".."):
        raise ModelFilesError(f"'{name}' is not a model name")
    seen: dict[str, str] = {}
    folders: set[str] = set()
    for path in sorted(file.path for file in files):
        _check_path(path)
        folded = unicodedata.normalize("NFC", path).casefold()
        if folded in seen:
            raise ModelFilesError(
                f"{path!r} and {seen[folded]!r} are the same file where case does not count"
            )
        seen[folded] = path
        folders.update(folded[:place] for place, letter in enumerate(folded) if letter == "/")
    for folder in sorted(folders & seen.keys()):
        raise ModelFilesError(f"{seen[folder]!r} is a file and a folder")


def _visible(files: Iterable[FileMark]) -> list[FileMark]:
    """Return files that are not hidden.

    Raises:
        SourceError: there are too many.
    """
    listed: list[FileMark] = []
    for file in files:
        if len(listed) == MOST_FILES:
            raise SourceError(
                f"more than {MOST_FILES} files are listed; expected a place that holds models only"
            )
        if not any(map(_is_left_out, file.path.split("/"))):
            listed.append(file)
    return listed


def _is_left_out(part: str) -> bool:
    return part in _NOT_MODELS or (part.startswith(".") and part not in (".", ".."))


def _check_path(path: str) -> None:
    parts = path.split("/")
    is_sound = all(
        part not in ("", ".", "..")
        and "\\" not in part
        and part.isprintable()
        and _encoded(part) <= _MOST_NAME_BYTES
        for part in parts
    )
    if not is_sound or len(parts) > _MOST_DEPTH:
        raise ModelFilesError(f"{path[:200]!r} cannot be the name of a file here")


def _encoded(part: str) -> int:
    """Return the length of a name in bytes; of one that is no Unicode, more than any file may have."""
    try:
        return len(part.encode())
    except UnicodeEncodeError:
        return _MOST_NAME_BYTES + 1


def _without_markers(files: list[FileMark]) -> list[FileMark]:
    """Return files without those that stand for folders, as consoles of stores make them."""
    folders = {file.path[:place] for file in files for place, letter in enumerate(file.path) if letter == "/"}
    return [file for file in files if file.path and not file.path.endswith("/") and file.path not in folders]


def _is_param(path: str) -> bool:
    return path.endswith(".param") and not path.endswith(".ncnn.param")


def _is_model(held: list[FileMark]) -> bool:
    """Return whether the files of a folder are a model, or versions of one."""
    places = [file.path.rpartition("/")[0] for file in held if _is_param(file.path)]
    return any(not place or place.isdecimal() for place in places)


def _are_versions(folders: Mapping[str, list[FileMark]]) -> bool:
    def has_params(held: list[FileMark]) -> bool:
        return any("/" not in file.path and _is_param(file.path) for file in held)

    def has_versions(held: list[FileMark]) -> bool:
        return any(file.path.partition("/")[0].isdecimal() and "/" in file.path for file in held)

    numbers = [held for folder, held in folders.items() if folder.isdecimal()]
    others = [held for folder, held in folders.items() if not folder.isdecimal()]
    return any(map(has_params, numbers)) and not any(
        has_params(held) or has_versions(held) for held in others
    )
