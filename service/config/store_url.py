"""Where models are: a folder, or a place in an object store."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from pydantic import PlainValidator

from engine import ModelFilesError

SCHEMES = ("s3", "gs", "az", "hf", "file")
"""S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage, Hugging Face, and folders."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_ANY_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'),]*")
_ACCESS = re.compile(r"://(?:[^/\s@:]*:(?!\d+[/\s])\S*|[^/\s@]*)@")
"""User and password of a URL; a password may hold slashes, as those of S3 do."""
_QUERY = re.compile(r"(://[^\s?]*)\?[^\s\"'),]*")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A place in a store.

    Attributes:
        scheme: the kind of store, one of `SCHEMES`.
        host: the bucket or container; of `hf`, the organisation; empty for `file`.
        path: where the models are in it, without slashes at either end.
    """

    scheme: str
    host: str
    path: str

    @property
    def name(self) -> str:
        """The last part: what a single model is called that lies there."""
        return self.path.rpartition("/")[2] or self.host

    def __str__(self) -> str:
        """Return the URL; there are no secrets in it."""
        return f"{self.scheme}://{self.host}/{self.path}".rstrip("/")


def without_secrets(text: str) -> str:
    """Return a text without what URLs in it may hold besides a place: users, passwords, signatures."""
    return _QUERY.sub(r"\1?…", _ACCESS.sub("://…@", text))


def without_urls(text: str) -> str:
    """Return a text without the URLs in it, which may name machines that clients need not know of."""
    return _ANY_URL.sub("…", text)


def _parse(value: Any) -> Path | StoreUrl:
    if isinstance(value, Path | StoreUrl):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a folder or the URL of a store")  # noqa: TRY004  # pydantic puts it in words
    found = _URL.match(value)
    if found is None:
        return Path(value)
    scheme = found[1].lower()
    if scheme not in SCHEMES:
        raise ValueError(f"expected a folder, or a URL that begins with {', '.join(SCHEMES)} and ://")
    parts = urlsplit(value)
    if parts.query or parts.fragment or {"@", ":"} & set(parts.netloc):
        raise ValueError(
            "expected a URL without user, password, query and fragment; credentials come from the environment"
        )
    path = unquote(parts.path).strip("/")
    if any(part in ("", ".", "..") for part in path.split("/")[bool(not path) :]) or "\0" in path:
        raise ValueError("expected a path without empty parts, '.' and '..'")
    if (scheme == "file") == bool(parts.netloc) or (scheme in ("hf", "file") and not path):
        expected = {"hf": "hf://ORGANISATION/NAME", "file": "file:///FOLDER"}.get(
            scheme, f"{scheme}://BUCKET/PREFIX"
        )
        raise ValueError(f"expected {expected}")
    return StoreUrl(scheme, parts.netloc, path)


def folder_of(location: Path | StoreUrl) -> Path:
    """Return the folder that holds models.

    Raises:
        ModelFilesError: they are in a store.
    """
    if isinstance(location, StoreUrl):
        raise ModelFilesError(f"{location} is in a store; expected a folder of models")
    return location


ModelLocation: TypeAlias = Annotated[Path | StoreUrl, PlainValidator(_parse)]
"""The folder of the models, or where they are in a store."""
