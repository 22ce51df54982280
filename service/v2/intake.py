"""From the head of an inference request of the protocol to its call."""

from service.config.limits import Limits
from service.repository.loaded_model import LoadedModel
from service.scheduling.call import Call, Surface
from service.scheduling.intake import Answer, Header
from service.v2.binary import HEADER, lead_of, parse_header_length
from service.v2.compression import IDENTITY, choose_encoding, parse_encoding
from service.v2.exchange import Exchange


class V2Intake:
    """An inference request whose body has not come yet.

    Args:
        model: the model that it asks for.
        request_id: its id.
        header: its headers.
        limits: how much it may ask for.

    Attributes:
        model: the model.
        surface: always V2.
        request_id: the id.
        lead: how many bytes to put before its body.
        is_compressed: whether the body has to be unpacked to make a call, which is no work for the event loop.

    Raises:
        ServiceError: 400 `invalid_header`, 501 `unsupported_encoding`.
    """

    def __init__(self, model: LoadedModel, request_id: str, header: Header, limits: Limits) -> None:
        self.model = model
        self.surface = Surface.V2
        self.request_id = request_id
        self._limits = limits
        self._encoding = parse_encoding(header("content-encoding"))
        self._answer_encoding = choose_encoding(header("accept-encoding"))
        self._header_length = parse_header_length(header(HEADER.lower()))
        self.is_compressed = self._encoding != IDENTITY
        self.lead = 0 if self.is_compressed else lead_of(self._header_length)

    def call(self, body: bytes | bytearray, received_ns: int) -> Call[Answer]:
        """Return the call.

        Raises:
            ServiceError: 400 or 413.
        """
        exchange = Exchange(
            self.model,
            body,
            self._encoding,
            self._header_length,
            self._answer_encoding,
            self._limits,
            self.lead,
        )
        del body  # the exchange drops it when it is decoded
        parameters = exchange.scheduling()
        return Call(
            model=self.model,
            surface=self.surface,
            request_id=self.request_id,
            decode=exchange.decode,
            encode=exchange.encode,
            received_ns=received_ns,
            timeout=parameters.timeout,
            priority=parameters.priority,
        )
