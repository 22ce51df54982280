"""What distinguishes one state of a model's files from another, without reading them."""

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

_VERSION = re.compile(r"[0-9]+")


class FileMark(NamedTuple):
    """One file of a model, as a listing shows it.

    Attributes:
        path: its path within the folder of the model, with `/`.
        size: its bytes.
        tag: what is another once the file is another: an entity tag, or the time when it was written.
    """

    path: str
    size: int
    tag: str


Fingerprint: TypeAlias = frozenset[FileMark]
"""All files of a model at one moment. Two are equal if the same files have the same sizes and tags."""


def unchanged_versions(versions: Iterable[str], old: Fingerprint, new: Fingerprint) -> list[str]:
    """Return those of a model's versions that are made of the same files in both.

    Args:
        versions: versions of the model.
        old: the files that they were loaded from.
        new: the files that there are now.
    """
    changed = {_version_of(mark) for mark in old ^ new}
    return [] if None in changed else [version for version in versions if version not in changed]


def _version_of(mark: FileMark) -> str | None:
    """Return the version whose folder holds a file; None for one that all versions share."""
    folder, _, rest = mark.path.partition("/")
    return folder if rest and _VERSION.fullmatch(folder) else None
