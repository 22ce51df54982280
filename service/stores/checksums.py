"""The file `checksums` in the folder of a model: what `sha256sum` writes, and checks."""

import re
from collections.abc import Mapping

from service.repository.files import ModelFilesError
from service.repository.fingerprint import CHECKSUMS

NAME = CHECKSUMS
"""Name of the file. Its paths are relative to its folder: that of a model, or of a version."""
MOST_BYTES = 16 << 20
_LINE = re.compile(r"(\\?)([0-9a-fA-F]{64}) [ *](.+)")
_TAGGED = re.compile(r"(\\?)SHA256 \((.+)\) = ([0-9a-fA-F]{64})")
_ESCAPED = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}


def parse_checksums(text: str, folder: str) -> dict[str, str]:
    """Return the SHA-256 of each file, in lower-case hexadecimal, by its path within the model.

    Args:
        text: what the file says.
        folder: where it lies within the model; empty, or with a slash at the end.

    Raises:
        ModelFilesError: a line is not as `sha256sum` writes it, or a file is listed twice with two digests.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        path, digest = _parse_line(line, f"{folder}{NAME}, line {number}")
        path = folder + path.removeprefix("./")
        if found.setdefault(path, digest) != digest:
            raise ModelFilesError(f"{folder}{NAME} has two digests of {path}")
    return found


def check_checksums(expected: Mapping[str, str], digests: Mapping[str, str], folder: str) -> None:
    """Check the files of a folder against its `checksums`.

    Args:
        expected: what `parse_checksums` returned.
        digests: the SHA-256 of all files of the model, by path.
        folder: as for `parse_checksums`.

    Raises:
        ModelFilesError: a file is missing, is not listed, or has another digest.
    """
    for path, digest in expected.items():
        if path not in digests:
            raise ModelFilesError(f"{path} is listed in {folder}{NAME}, and is not there")
        if digests[path] != digest:
            raise ModelFilesError(
                f"{path} is not what {folder}{NAME} lists: SHA-256 {digests[path]}, expected {digest}"
            )
    for path in digests:
        if path.startswith(folder) and path not in expected and path.rpartition("/")[2] != NAME:
            raise ModelFilesError(
                f"{path} is not listed in {folder}{NAME}; expected every file of the folder"
            )


def _parse_line(line: str, where: str) -> tuple[str, str]:
    if plain := _LINE.fullmatch(line):
        escaped, digest, path = plain.groups()
    elif tagged := _TAGGED.fullmatch(line):
        escaped, path, digest = tagged.groups()
    else:
        raise ModelFilesError(
            f"{where}: expected a SHA-256 in hexadecimal, two spaces and a path, as sha256sum writes"
        )
    if escaped:
        path = re.sub(r"\\[\\nr]", lambda match: _ESCAPED[match[0]], path)
    return path, digest.lower()
