"""The head of an inference request of the protocol, which makes a call once its body has arrived."""

from starlette.requests import Request

from service.config.limits import Limits
from service.context import context_in
from service.repository.loaded_model import LoadedModel
from service.scheduling.answer import Answer
from service.scheduling.call import Call, SurfaceName
from service.v2.binary import HEADER, padding_of, parse_header_length
from service.v2.compression import IDENTITY, choose_encoding, parse_encoding
from service.v2.exchange import SMALL_BYTES, V2Exchange

_HEADER = HEADER.lower().encode()


class V2Head:
    """An inference request of the protocol whose body has not arrived yet.

    Args:
        request: the request.
        model: the model that it names.
        request_id: its id.
        limits: upper bounds on its size.

    Attributes:
        model: the model.
        takes_encoded_body: always true.
        padding: number of zero bytes to put before the body.

    Raises:
        ServiceError: 400 `invalid_header`, 501 `unsupported_encoding`.
    """

    takes_encoded_body = True

    def __init__(self, request: Request, model: LoadedModel, request_id: str, limits: Limits) -> None:
        context = context_in(request.scope)
        self.model = model
        self._request_id = request_id
        self._client = context.client
        self._limits = limits
        headers = context.headers  # most requests have neither, and need not be asked further
        self._encoding = self._answer_encoding = IDENTITY
        if b"content-encoding" in headers:
            self._encoding = parse_encoding(context.header(b"content-encoding"))
        if b"accept-encoding" in headers:
            self._answer_encoding = choose_encoding(context.header(b"accept-encoding"))
        self._header_length = parse_header_length(context.header(_HEADER))
        self._is_compressed = self._encoding != IDENTITY
        self.padding = 0 if self._is_compressed else padding_of(self._header_length)

    def is_heavy(self, size: int) -> bool:
        """Return whether the body has to be decompressed, or has a large JSON part that may have to be parsed."""
        json_size = size if self._header_length is None else self._header_length
        return self._is_compressed or json_size > SMALL_BYTES

    def call(self, body: bytes, received_ns: int) -> Call[Answer]:
        """Return the call.

        Raises:
            ServiceError: 400 or 413.
        """
        exchange = V2Exchange(
            self.model,
            body,
            self._encoding,
            self._header_length,
            self._answer_encoding,
            self._limits,
            self.padding,
        )
        del body  # the exchange drops it once it is decoded
        parameters = exchange.scheduling()
        return Call(
            model=self.model,
            surface=SurfaceName.V2,
            request_id=self._request_id,
            decode=exchange.decode,
            encode=exchange.encode,
            received_ns=received_ns,
            timeout=parameters.timeout,
            priority=parameters.priority,
            client=self._client,
            is_brief=exchange.is_brief,
        )
