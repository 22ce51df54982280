"""S3, Google Cloud Storage, Azure Blob Storage and folders, by obstore. Credentials are what it finds by itself."""

import os
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import quote

import obstore
from obstore.store import from_url

from service.config.store_url import StoreUrl
from service.repository.fingerprint import FileMark
from service.repository.model_source import SourceError

_CHUNK_BYTES = 4 << 20
_SILENCE = timedelta(seconds=30)


class ObjectStore:
    """A `RemoteStore`: a place in an object store.

    Args:
        url: the place.
    """

    def __init__(self, url: StoreUrl) -> None:
        place = f"{url.scheme}://{url.host}/{quote(url.path)}"  # else a "?" or "#" would end the path
        # the library reads these variables itself, but not beside other options
        allow_http = (os.environ.get(f"{cloud}_ALLOW_HTTP", "") for cloud in ("AWS", "GOOGLE", "AZURE"))
        self._store = from_url(
            place,
            client_options={
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": _SILENCE,
                "timeout": timedelta(hours=1),
                "allow_http": any(value.lower() in ("true", "1") for value in allow_http),
            },
            retry_config={"max_retries": 3, "retry_timeout": _SILENCE},
        )

    def list(self) -> Iterator[FileMark]:
        """Yield all objects below the place."""
        for chunk in obstore.list(self._store):
            for found in chunk:
                tag = _tag(found["e_tag"]) or f"{found['last_modified'].timestamp():f}"
                yield FileMark(found["path"], found["size"], tag)

    def read(self, file: FileMark) -> Iterator[bytes]:
        """Yield the bytes of an object."""
        found = obstore.get(self._store, file.path)
        if _tag(found.meta["e_tag"]) not in ("", file.tag):
            raise SourceError(f"{file.path} has changed since it was listed")
        yield from map(bytes, found.stream(_CHUNK_BYTES))


def _tag(entity_tag: str | None) -> str:
    """Return a tag without quotes, which Azure has in responses and not in listings; empty if there is none."""
    return (entity_tag or "").strip('"')
