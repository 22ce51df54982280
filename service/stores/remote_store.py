"""What a store of another machine has to offer."""

from collections.abc import Iterator
from typing import Protocol

from service.repository.fingerprint import FileMark


class RemoteStore(Protocol):
    """Lists and reads files below one place of a store. Their paths are relative to it."""

    def list(self) -> Iterator[FileMark]:
        """Yield all files, in any order.

        Raises:
            SourceError: the store cannot be reached, or refuses.
        """

    def read(self, file: FileMark) -> Iterator[bytes]:
        """Yield the bytes of a file in pieces.

        Raises:
            SourceError: the store cannot be reached, the file is gone, or it is another one by now.
        """

    def digest(self, file: FileMark) -> tuple[str, str] | None:
        """Return the store's digest of a file: the name of the algorithm, and the digest in hexadecimal.

        The algorithm is one of `hashlib`, or `git`: the SHA-1 of git's blob. None where the store has none.
        """

    def is_sure(self) -> bool:
        """Return whether what `digest` returns is a digest for sure; an entity tag of S3 may only look like one."""
