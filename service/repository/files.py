"""The models of a folder: which folders and files they are, as the engine knows them, and which names they may have."""

import re

from engine import ModelFiles, ModelFilesError, find_files, model_folders, version_folders

__all__ = [
    "MODEL_NAME",
    "ModelFiles",
    "ModelFilesError",
    "check_name",
    "find_files",
    "model_folders",
    "version_folders",
]

MODEL_NAME = re.compile(r"[A-Za-z0-9._-]+")
"""Names that a model may have: without characters that mean something in a path or a URL."""


def check_name(name: str) -> None:
    """Check the name of a model.

    Raises:
        ModelFilesError: the name is invalid.
    """
    if name in (".", "..") or not MODEL_NAME.fullmatch(name):
        raise ModelFilesError(f"'{name}' is not a model name; expected letters, digits, '.', '_' and '-'")
