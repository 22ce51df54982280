"""The file `checksums` in the folder of a model or version, as `sha256sum` writes it: what an upload consists of."""

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from service.repository.files import ModelFilesError
from service.repository.fingerprint import CHECKSUMS

MAX_BYTES = 16 << 20
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](?:\./)?(.+)")


def check_checksums(folder: Path, paths: Collection[str]) -> None:
    """Check the files of a model against the `checksums` beside them, if there are any.

    Args:
        folder: the model.
        paths: all its files.

    Raises:
        ModelFilesError: a list is malformed; or a file is missing, not listed, or has another digest.
    """
    held = frozenset(paths)
    for where in sorted(held):
        start, _, name = where.rpartition("/")
        if name != CHECKSUMS or "/" in start:
            continue
        prefix = where.removesuffix(CHECKSUMS)
        expected = _read(folder / where, where, prefix)
        for path, digest in expected.items():
            if path not in held:
                raise ModelFilesError(f"{path} is listed in {where}, and is not there")
            with (folder / path).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != digest:
                raise ModelFilesError(f"{path} is not what {where} lists: SHA-256 {found}, expected {digest}")
        for path in sorted(held - expected.keys()):
            if path.startswith(prefix) and path.rpartition("/")[2] != CHECKSUMS:
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
