"""Repositories of models on Hugging Face, or what speaks its protocol. Tokens are what its library finds by itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import HfApi, HfFileSystem
from huggingface_hub.hf_api import RepoFile

from service.config.store_url import StoreUrl, without_secrets
from service.repository.fingerprint import FileMark
from service.repository.model_source import SourceError

_CHUNK_BYTES = 4 << 20
_MOST_WORDS = 300


class HuggingFaceStore:
    """A repository of models, or a folder in it, as its main branch or the one that the URL names is.

    Args:
        url: hf://ORGANISATION/NAME, with @REVISION after the name and a folder behind it where these are wanted.
        endpoint: address of the server; None for what `HF_ENDPOINT` says.
    """

    def __init__(self, url: StoreUrl, endpoint: str | None = None) -> None:
        self._url = url
        repository, _, self._folder = url.path.partition("/")
        name, _, revision = repository.partition("@")
        self._repository = f"{url.host}/{name}"
        self._branch = revision or None
        self._commit = ""
        self._api = HfApi(endpoint)

    def list(self) -> Iterator[FileMark]:
        """Yield the files of the newest commit.

        Raises:
            SourceError: the repository cannot be reached, or there is none.
        """
        with _errors_of(self._url):
            self._commit = self._api.model_info(self._repository, revision=self._branch, timeout=30).sha or ""
            tree = self._api.list_repo_tree(
                self._repository, self._folder or None, recursive=True, revision=self._commit
            )
            start = len(self._folder) + 1 if self._folder else 0
            for found in tree:
                if isinstance(found, RepoFile) and found.path.startswith(self._folder):
                    tag = f"git:{found.blob_id}" if found.lfs is None else f"sha256:{found.lfs.sha256}"
                    yield FileMark(found.path[start:], found.size, tag)

    def read(self, file: FileMark) -> Iterator[bytes]:
        """Yield the bytes of a file in the commit that was listed last.

        Raises:
            SourceError: the repository cannot be reached, or the file is not in that commit.
        """
        folder = f"{self._folder}/" if self._folder else ""
        place = f"{self._repository}@{self._commit}/{folder}{file.path}"
        with _errors_of(self._url):
            files = HfFileSystem(endpoint=self._api.endpoint, skip_instance_cache=True)
            with files.open(place, block_size=_CHUNK_BYTES) as source:
                while chunk := source.read(_CHUNK_BYTES):
                    yield chunk

    def digest(self, file: FileMark) -> tuple[str, str]:
        """Return the digest that git has of a file: of its bytes, or of those of its large-file storage."""
        algorithm, _, digest = file.tag.partition(":")
        return algorithm, digest

    def is_sure(self) -> bool:
        """Return True: what names a file in git is a digest."""
        return True


@contextmanager
def _errors_of(url: StoreUrl) -> Iterator[None]:
    """Turn errors of the library into one sentence, without anything that may be secret."""
    try:
        yield
    except Exception as error:  # versions of the library let errors of different HTTP libraries through
        words = without_secrets(str(error).strip().partition("\n")[0])
        raise SourceError(f"{url} cannot be read: {words[:_MOST_WORDS]}") from error
