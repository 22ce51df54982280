"""The file `checksums` in the folder of a model or version, as `sha256sum` writes it: what an upload consists of."""

import re
from collections.abc import Mapping
from pathlib import Path

from service.repository.files import ModelFilesError
from service.repository.fingerprint import CHECKSUMS

MAX_BYTES = 16 << 20
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](?:\./)?(.+)")


def check_checksums(folder: Path, digests: Mapping[str, str]) -> None:
    """Check the files of a model against the `checksums` beside them, if there are any.

    Args:
        folder: the model.
        digests: SHA-256 of all its files, by path.

    Raises:
        ModelFilesError: a list is malformed; or a file is missing, not listed, or has another digest.
    """
    for path in digests:
        start, _, name = path.rpartition("/")
        if name == CHECKSUMS and "/" not in start:
            prefix = path.removesuffix(CHECKSUMS)
            _check(_read(folder / path, path, prefix), digests, path, prefix)


def _check(expected: Mapping[str, str], digests: Mapping[str, str], where: str, prefix: str) -> None:
    for path, digest in expected.items():
        if path not in digests:
            raise ModelFilesError(f"{path} is listed in {where}, and is not there")
        if digests[path] != digest:
            raise ModelFilesError(
                f"{path} is not what {where} lists: SHA-256 {digests[path]}, expected {digest}"
            )
    for path in digests:
        if path.startswith(prefix) and path not in expected and path.rpartition("/")[2] != CHECKSUMS:
            raise ModelFilesError(f"{path} is not listed in {where}; expected every file of the folder")


def _read(file: Path, where: str, prefix: str) -> dict[str, str]:
    """Return the digest of each file by its path within the model."""
    if file.stat().st_size > MAX_BYTES:
        raise ModelFilesError(f"{where} has more than {MAX_BYTES} bytes")
    expected: dict[str, str] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise ModelFilesError(
                f"{where}, line {number}: expected a SHA-256 in hexadecimal, two spaces and a path, "
                "as sha256sum writes"
            )
        path, digest = prefix + found[2], found[1].lower()
        if expected.setdefault(path, digest) != digest:
            raise ModelFilesError(f"{where} has two digests of {path}")
    return expected
