"""What the heads of `POST /infer` and of `:predict` have in common."""

from typing import ClassVar, Protocol

from starlette.requests import Request

from service.codec import Decoded
from service.config.limits import Limits
from service.context import context_of
from service.repository.loaded_model import LoadedModel
from service.scheduling.answer import Answer
from service.scheduling.call import Call, RunOutcome, SurfaceName


class Exchange(Protocol):
    """A request with its body, and its answer."""

    def decode(self) -> Decoded:
        """Return the inputs of the graph."""

    def encode(self, outcome: RunOutcome) -> Answer:
        """Return the answer."""


class PlainHead:
    """An inference request whose body, which has not arrived yet, is decoded by a worker as it is.

    Args:
        request: the request.
        model: the model that it names.
        request_id: its id.
        limits: how much it may ask for.

    Attributes:
        surface: the interface that it came by.
        model: the model.
        takes_encoded_body: always false.
        padding: always 0.
    """

    surface: ClassVar[SurfaceName]
    takes_encoded_body = False
    padding = 0

    def __init__(self, request: Request, model: LoadedModel, request_id: str, limits: Limits) -> None:
        self.model = model
        self._request_id = request_id
        self._client = context_of(request).client
        self._limits = limits

    def is_heavy(self, size: int) -> bool:
        """Return false: a worker decodes the body, whatever its size."""
        del size
        return False

    def _call(self, exchange: Exchange, received_ns: int, timeout: float | None = None) -> Call[Answer]:
        """Return the call of an exchange; it is given up after `timeout` seconds, None for the usual ones."""
        return Call(
            model=self.model,
            surface=self.surface,
            request_id=self._request_id,
            decode=exchange.decode,
            encode=exchange.encode,
            received_ns=received_ns,
            client=self._client,
            timeout=timeout,
        )
