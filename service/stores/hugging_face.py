"""Repositories of models on Hugging Face, or what speaks its protocol. Tokens are what its library finds by itself."""

from collections.abc import Iterator

from huggingface_hub import HfApi, HfFileSystem
from huggingface_hub.hf_api import RepoFile

from service.config.store_url import StoreUrl
from service.repository.fingerprint import FileMark
from service.repository.model_source import SourceError
from service.stores.store_errors import worded

_CHUNK_BYTES = 4 << 20


class HuggingFaceStore:
    """A `RemoteStore`: a repository of models or a folder in it, as its main branch or the URL's revision is.

    Args:
        url: hf://ORGANISATION/NAME, with @REVISION after the name and a folder behind it where these are wanted.
        endpoint: address of the server; None for what `HF_ENDPOINT` says.
    """

    def __init__(self, url: StoreUrl, endpoint: str | None = None) -> None:
        self._url = url
        repository, _, folder = url.path.partition("/")
        name, _, revision = repository.partition("@")
        self._repository = f"{url.host}/{name}"
        self._folder = f"{folder}/" if folder else ""
        self._branch = revision or None
        self._commit = ""
        self._api = HfApi(endpoint)

    def list(self) -> Iterator[FileMark]:
        """Yield the files of the newest commit."""
        with worded(self._url):
            self._commit = self._api.model_info(self._repository, revision=self._branch, timeout=30).sha or ""
            tree = self._api.list_repo_tree(
                self._repository, self._folder.rstrip("/") or None, recursive=True, revision=self._commit
            )
            for found in tree:
                if isinstance(found, RepoFile) and found.path.startswith(self._folder):
                    yield FileMark(found.path.removeprefix(self._folder), found.size, found.blob_id)

    def read(self, file: FileMark) -> Iterator[bytes]:
        """Yield the bytes of a file in the commit that was listed last."""
        place = f"{self._repository}@{self._commit}/{self._folder}{file.path}"
        with worded(self._url):
            files = HfFileSystem(endpoint=self._api.endpoint, skip_instance_cache=True)
            with files.open(place, block_size=_CHUNK_BYTES) as source:
                if source.details["blob_id"] != file.tag:  # another thread has listed a newer commit
                    raise SourceError(f"{file.path} has changed since it was listed")
                while chunk := source.read(_CHUNK_BYTES):
                    yield chunk
