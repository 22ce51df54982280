"""Repositories of models on Hugging Face, or what speaks its protocol. Tokens are what its library finds by itself."""

from collections.abc import Iterator
from typing import Any

from huggingface_hub import HfApi, HfFileSystem

from service.config.store_url import StoreUrl
from service.repository.fingerprint import FileMark
from service.repository.model_source import SourceError

_CHUNK_BYTES = 4 << 20


class HuggingFaceStore:
    """A `RemoteStore`: a repository of models or a folder in it, as its main branch or the URL's revision is.

    Args:
        url: hf://ORGANISATION/NAME, with @REVISION after the name and a folder behind it where these are wanted.
        endpoint: address of the server; None for what `HF_ENDPOINT` says.
    """

    def __init__(self, url: StoreUrl, endpoint: str | None = None) -> None:
        repository, _, self._folder = url.path.partition("/")
        name, _, revision = repository.partition("@")
        self._repository = f"{url.host}/{name}"
        self._branch = revision or None
        self._api = HfApi(endpoint)
        self._place = ""
        self._files = HfFileSystem(endpoint=endpoint, skip_instance_cache=True)

    def list(self) -> Iterator[FileMark]:
        """Yield the files of the newest commit."""
        commit = self._api.model_info(self._repository, revision=self._branch, timeout=30).sha
        self._place = f"{self._repository}@{commit}/{self._folder}".rstrip("/") + "/"
        self._files = HfFileSystem(endpoint=self._api.endpoint, skip_instance_cache=True)
        found: Any = self._files.find(self._place.rstrip("/"), detail=True, expand_info=False)
        for path, file in found.items():
            yield FileMark(path.removeprefix(self._place), file["size"], file["blob_id"])

    def read(self, file: FileMark) -> Iterator[bytes]:
        """Yield the bytes of a file in the commit that was listed last."""
        with self._files.open(self._place + file.path, block_size=_CHUNK_BYTES) as source:
            if source.details["blob_id"] != file.tag:  # another thread has listed a newer commit
                raise SourceError(f"{file.path} has changed since it was listed")
            while chunk := source.read(_CHUNK_BYTES):
                yield chunk
