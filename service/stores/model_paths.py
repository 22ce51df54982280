"""Which files of a listing are which models, and which of their names can be those of files here."""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice

from service.config.store_url import StoreUrl
from service.repository.files import ModelFilesError, check_name
from service.repository.fingerprint import FileMark, Fingerprint
from service.repository.model_source import SourceError

MAX_FILES = 100_000
"""Files of a store that are listed; below a place with more, there are other things than models."""
_MAX_NAME_BYTES = 255
_NOT_MODELS = frozenset({"lost+found", "__pycache__"})
_PARAM = re.compile(r"(?:[0-9]+/)?[^/]+(?<!\.ncnn)\.param")
"""The path of a `.param` file of a model, or of one of its versions."""


def models_of(
    files: Iterable[FileMark], url: StoreUrl, single: str | None
) -> dict[str, tuple[str, Fingerprint]]:
    """Return each model by its name, in order of name: the prefix of its files, and these, with paths behind it.

    As in a folder of this machine: where a `.param` file lies at the top, or versions of one model and no other
    models, all of it is one model; otherwise each folder is one. What is hidden is left out.

    Args:
        files: all files of a place.
        url: the place.
        single: what a single model is to be called; None for its own name.

    Raises:
        SourceError: there is no model, there are too many files, several models where one is to have a name, or a
            `.param` file beside the folders of models.
    """
    listed = _files_of_models(files, url)
    folders: dict[str, list[FileMark]] = defaultdict(list)
    for file in listed:
        folder, _, path = file.path.partition("/")
        if path:
            folders[folder].append(file._replace(path=path))
    params = sorted(file.path for file in listed if _PARAM.fullmatch(file.path) and "/" not in file.path)
    others = sorted(folder for folder, held in folders.items() if not folder.isdecimal() and _is_model(held))
    if params and others:  # else the models would be gone because somebody put one file in the wrong place
        problem = f"{params[0]!r} is beside the models {', '.join(others)}; expected it in a folder"
        raise SourceError(f"{url}: {problem}")
    if params or (not others and _is_model(listed)):
        return {single or url.name: ("", frozenset(listed))}
    if not folders:
        raise SourceError(f"{url}: no models: expected folders that each hold a .param and a .bin file")
    if single is not None and len(folders) > 1:
        raise SourceError(f"{url}: model_name is for a single model; there are {len(folders)}")
    return {single or folder: (f"{folder}/", frozenset(held)) for folder, held in sorted(folders.items())}


def check_paths(name: str, files: Fingerprint) -> None:
    """Check that the files of a model can be written to a folder, all of them within it.

    Raises:
        ModelFilesError: a name is no name of a file.
    """
    check_name(name)
    for file in files:
        if not all(map(_is_file_name, file.path.split("/"))):
            raise ModelFilesError(f"{file.path[:200]!r} cannot be the name of a file here")


def _is_file_name(part: str) -> bool:
    # what is printable can be encoded
    return (
        part not in ("", ".", "..")
        and "\\" not in part
        and part.isprintable()
        and len(part.encode()) <= _MAX_NAME_BYTES
    )


def _files_of_models(files: Iterable[FileMark], url: StoreUrl) -> list[FileMark]:
    """Return files that are not hidden, without those that stand for folders, as consoles of stores make them.

    Raises:
        SourceError: there are too many.
    """
    visible = (file for file in files if not any(map(_is_hidden, file.path.split("/"))))
    listed = list(islice(visible, MAX_FILES + 1))
    if len(listed) > MAX_FILES:
        problem = f"more than {MAX_FILES} files are listed; expected a place that holds models only"
        raise SourceError(f"{url}: {problem}")
    folders = {
        file.path[:place] for file in listed for place, letter in enumerate(file.path) if letter == "/"
    }
    return [file for file in listed if file.path and not file.path.endswith("/") and file.path not in folders]


def _is_hidden(part: str) -> bool:
    return part in _NOT_MODELS or (part.startswith(".") and part not in (".", ".."))


def _is_model(files: Iterable[FileMark]) -> bool:
    """Return whether files are a model, or versions of one."""
    return any(_PARAM.fullmatch(file.path) for file in files)
