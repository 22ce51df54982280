"""API keys: reads them from settings and files, and compares the keys of requests with them."""

import logging
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from time import monotonic

from pydantic import SecretStr

from service.config.setting_file import SettingsError
from service.context import Peer

_FILE_BYTES = 1 << 20
_LOOK_SECONDS = 1.0
"""Shortest time, in seconds, between two checks of whether the file has changed."""
_SHORT = 16
_KEY = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,512}")

_logger = logging.getLogger(__name__)


class KeyRing:
    """A set of keys, any of which is accepted, so that a new key can be issued before the old one is withdrawn.

    A file of keys is read again when it changes. If it becomes unreadable, the keys read last stay valid: deleting the
    file neither opens the server to everyone nor locks everyone out.

    Args:
        setting: name of the setting, for messages.
        keys: keys with commas between.
        path: file of keys, one a line; empty lines, and comments from `#` at the start of a line or after a
            space, are ignored.
        clock: returns seconds; decides when to check the file again.

    Raises:
        SettingsError: there is no key where one was promised, one is malformed, or the file cannot be read.
    """

    def __init__(
        self, setting: str, keys: SecretStr | None, path: Path | None, clock: Callable[[], float] = monotonic
    ) -> None:
        self._setting = setting
        self._path = path
        self._clock = clock
        self._fixed = _digests(setting, (keys.get_secret_value() if keys else "").split(","))
        if keys is not None and not self._fixed:
            raise SettingsError(f"{setting}: holds no key")
        self._filed: tuple[bytes, ...] = ()
        self._look_at = clock() + _LOOK_SECONDS
        self._seen: tuple[int, ...] | None = None
        if path is not None:
            self._read(path)
            if not self._filed:
                raise SettingsError(f"{setting}_file: {path} holds no key")
        self.is_set = keys is not None or path is not None

    def accepts(self, given: Iterable[bytes]) -> bytes | None:
        """Return the digest of one of the given keys that is in the set, None where none is.

        The time that it takes does not depend on which.
        """
        self._look()
        digests = [sha256(key).digest() for key in given]
        found = None
        for own in (*self._fixed, *self._filed):
            for digest in digests:
                if compare_digest(own, digest):
                    found = digest
        return found

    def holds(self, digest: Peer) -> bool:
        """Return whether a digest that `accepts` returned is of one of these keys."""
        return digest in self._fixed or digest in self._filed

    def _look(self) -> None:
        now = self._clock()
        if self._path is None or now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        try:
            if _state(self._path) != self._seen:
                self._read(self._path)
                _logger.info("%s_file was read again: it holds %d keys", self._setting, len(self._filed))
        except (OSError, SettingsError) as error:
            if self._seen is not None:
                reason = error if isinstance(error, SettingsError) else error.strerror
                _logger.warning("%s_file: the previous keys stay in use: %s", self._setting, reason)
            self._seen = None

    def _read(self, path: Path) -> None:
        name = f"{self._setting}_file"
        try:
            if not path.is_file() and path.exists():
                raise SettingsError(f"{name}: {path} is not a regular file")
            state = _state(path)
            with path.open("rb") as file:
                data = file.read(_FILE_BYTES + 1)
        except OSError as error:
            raise SettingsError(f"{name}: cannot read {path}: {error.strerror}") from error
        if len(data) > _FILE_BYTES:
            raise SettingsError(f"{name}: {path} has more than {_FILE_BYTES} bytes")
        lines = data.decode("utf-8-sig", "replace").splitlines()
        self._filed = _digests(name, (re.sub(r"(^|\s)#.*", "", line) for line in lines))
        self._seen = state


def _state(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_ino, stat.st_size


def _digests(setting: str, keys: Iterable[str]) -> tuple[bytes, ...]:
    found = []
    for number, key in enumerate((key.strip() for key in keys), 1):
        if not key:
            continue
        if not _KEY.fullmatch(key):
            raise SettingsError(
                f"{setting}: key {number} may hold 1 to 512 characters of ASCII, no space, no comma"
            )
        if len(key) < _SHORT:
            _logger.warning(
                "%s: key %d has less than %d characters and may be guessed", setting, number, _SHORT
            )
        found.append(sha256(key.encode()).digest())
    return tuple(found)
