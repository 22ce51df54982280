"""The version that answers a request, and what is told of how the request ends."""

from types import TracebackType

from starlette.requests import ClientDisconnect

from engine import InputError
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.traffic.request_endings import RequestEndings


class Choice:
    """Entered while the request is answered.

    Args:
        model: the version.
        endings: told how the request ends, where its version was chosen and is judged; None otherwise.
        is_led: whether a header of the client led it to the version: what one client does wrong would all fail there.
    """

    __slots__ = ("_endings", "_is_led", "model")

    def __init__(
        self, model: LoadedModel, endings: RequestEndings | None = None, is_led: bool = False
    ) -> None:
        self.model = model
        self._endings = endings
        self._is_led = is_led

    def __enter__(self) -> LoadedModel:
        """Begin to answer."""
        return self.model

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Count the request, unless it failed because of a client that a header led here."""
        if self._endings is None or (self._is_led and error is not None and _is_of_client(error)):
            return
        self._endings.observe(self.model.name, self.model.version, is_answered=error is None)


def _is_of_client(error: BaseException) -> bool:
    """Tell whether a request failed by what its client did: it sent what is refused, or left."""
    if isinstance(error, ServiceError):
        return error.status < 500
    return isinstance(error, InputError | ClientDisconnect) or not isinstance(error, Exception)
