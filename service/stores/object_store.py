"""S3, Google Cloud Storage, Azure Blob Storage and folders, by obstore. Credentials are what it finds by itself."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import obstore
from obstore.exceptions import BaseError
from obstore.store import from_url

from service.config.store_url import StoreUrl
from service.repository.fingerprint import FileMark
from service.repository.model_source import SourceError
from service.stores.store_errors import unreadable

if TYPE_CHECKING:  # the library has them for type checkers only
    from obstore.store import ClientConfig, RetryConfig

_CHUNK_BYTES = 4 << 20
_LISTED_AT_ONCE = 1000
_SILENCE = timedelta(seconds=30)
_REQUEST = timedelta(hours=1)
_ALLOW_HTTP = ("AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_ALLOW_HTTP")
_MD5 = re.compile(r"[0-9a-f]{32}")
_TAGS_WITH_MD5 = frozenset({"s3", "gs"})


class ObjectStore:
    """A place in an object store.

    Args:
        url: the place.

    Raises:
        SourceError: what is set in the environment does not lead to a store.
    """

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        client: ClientConfig = {
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": _SILENCE,
            "timeout": _REQUEST,
            # the library reads this variable itself, but not beside other options
            "allow_http": any(os.environ.get(name, "").lower() in ("true", "1") for name in _ALLOW_HTTP),
        }
        with _told(url):
            place = f"{url.scheme}://{url.host}/{quote(url.path)}"  # else a "?" or "#" would end the path
            if url.scheme == "file":
                self._store = from_url(place)
            else:
                retries: RetryConfig = {"max_retries": 3, "retry_timeout": _SILENCE}
                self._store = from_url(place, client_options=client, retry_config=retries)

    def list(self) -> Iterator[FileMark]:
        """Yield all objects below the place.

        Raises:
            SourceError: the store cannot be reached, or refuses; or an object has a name that is no path.
        """
        with _told(self._url):
            for chunk in obstore.list(self._store, chunk_size=_LISTED_AT_ONCE):
                for found in chunk:
                    tag = found["e_tag"] or f"{found['last_modified'].timestamp():f}"
                    yield FileMark(found["path"], found["size"], tag)

    def read(self, file: FileMark) -> Iterator[bytes]:
        """Yield the bytes of an object.

        Raises:
            SourceError: the store cannot be reached, the object is gone, or it is another one by now.
        """
        with _told(self._url):
            found = obstore.get(self._store, file.path)
            tag = found.meta["e_tag"]
            # Azure quotes it in responses, but not in listings
            if tag is not None and tag.strip('"') != file.tag.strip('"'):
                raise SourceError(f"{file.path} has changed since it was listed")
            for chunk in found.stream(_CHUNK_BYTES):
                yield bytes(chunk)

    def digest(self, file: FileMark) -> tuple[str, str] | None:
        """Return the MD5 that a tag of S3 or Google is, if an object was sent whole and is not encrypted."""
        tag = file.tag.strip('"')
        return ("md5", tag) if self._url.scheme in _TAGS_WITH_MD5 and _MD5.fullmatch(tag) else None

    def is_sure(self) -> bool:
        """Return False: the tag of an encrypted object looks like an MD5 as well."""
        return False


@contextmanager
def _told(url: StoreUrl) -> Iterator[None]:
    """Turn errors of the library into one sentence, without anything that may be secret."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise unreadable(url, error) from error
