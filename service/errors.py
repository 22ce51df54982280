"""Errors of the service; clients see `{"error": "one sentence", "code": "machine_readable", "details": {…}}`."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from engine import InputError, LayerError


class ListenError(Exception):
    """The address cannot be listened on; the message is one sentence, which names the setting to change."""


class ServiceError(Exception):
    """A request that cannot be answered as asked.

    Attributes:
        status: HTTP status.
        code: machine-readable name of the error, `snake_case`.
        message: one sentence for people.
        details: values that a program may need to react.
        headers: HTTP headers to answer with, e.g. `Retry-After`.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = dict(details or {})
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        return {"error": self.message, "code": self.code, "details": self.details}


def shown(value: object) -> str:
    """Return a value for a message, shortened to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'NAME'?" with the nearest of the known names, whatever its case; "" if none is near."""
    names = {one.lower(): one for one in known}
    nearest = get_close_matches(name[:80].lower(), names, n=1)
    return f"; did you mean {names[nearest[0]]!r}?" if nearest else ""


def clipped(text: str, limit: int = 4096) -> str:
    """Return a text, shortened to a number of characters where it has more: clients and files may have any."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def out_of_memory(message: str = "the server has too little memory for the request") -> ServiceError:
    """Return the error to answer with when memory for a request cannot be had."""
    return ServiceError(503, "out_of_memory", message, headers={"Retry-After": "1"})


def engine_error(error: InputError | LayerError) -> ServiceError:
    """Return the error to answer with when a model does not run on the arrays of a request."""
    if isinstance(error, InputError):
        return ServiceError(422, "input_mismatch", str(error))
    if isinstance(error.__cause__, MemoryError):
        return out_of_memory(str(error))
    return ServiceError(422, "layer_failed", str(error))


def without_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error that explains itself, and of those that led to it.

    Their frames hold what was decoded, and the call that keeps the error: the body of a refused request would lie in
    memory until the garbage collector looks for cycles, which a server hardly ever has it do.
    """
    chain: list[BaseException] = [error]
    for following in chain:
        following.__traceback__ = None
        led_to_it = (following.__cause__, following.__context__)
        chain += [other for other in led_to_it if other is not None and other not in chain]
