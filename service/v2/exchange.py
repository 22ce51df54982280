"""One inference request of the protocol: its body is decoded to inputs of a graph, the run encoded to a response."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from starlette.requests import Request

from engine import RunResult, RunTrace, TraceLevel
from service.codec import Decoded, Options, describe_trace
from service.codec.response import EncodedResponse
from service.config.limits import Limits
from service.context import Peer, context_of
from service.decoding import NeedsDecoderError
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import Job, ProtocolName, Timestamps
from service.v2.batching import has_dynamic_batch
from service.v2.binary import HEADER, distribute, padding_of, parse_header_length, split
from service.v2.compression import IDENTITY, choose_encoding, decompress, parse_encoding
from service.v2.description import Description, describe
from service.v2.document import Document, parse_object
from service.v2.inputs import read_inputs
from service.v2.parameters import InferParameters
from service.v2.raw import raw_input
from service.v2.request import InferRequest, parse_request, request_parameters
from service.v2.response import SelectedOutput, check_names, compressed, select_outputs, write_response

_NOT_READ = InferRequest(None, InferParameters(), ())
"""Stands for a request until its inputs are read."""
RAW = 0
"""Length of the JSON part which means that the whole body is one input."""
_BRIEF = 1 << 10
"""Maximum bytes of a JSON part that is remembered if it describes binary data: clients send the same one repeatedly."""
SMALL_BYTES = 1 << 16
"""Maximum bytes of JSON that are always parsed before the request is queued; larger parts only if they have to be."""
_LITTLE_MORE = 2
"""How many times as large as its compressed form a body may be that is kept decompressed."""
_SCHEDULING = (b'"timeout"', b'"priority"')
_MAX_QUOTES = 1000
_HEADER = HEADER.lower().encode()
_WINDOW = 1 << 20
"""Bytes that are searched at a time, to yield the GIL in between."""


class V2Exchange:
    """An inference request and its response.

    `scheduling` may be called first, then `decode`, then `encode`, each once, by one thread at a time.

    Args:
        model: the model.
        body: the request's whole body.
        encoding: its content coding.
        header_length: length of its JSON part; None if there is nothing else, `RAW` if there is no such part.
        response_encoding: content coding of the response.
        limits: upper bounds on the size of the request.
        padding: number of zero bytes before the body; 0 if it is compressed.
        request_id: id of the request.
        client: who sent it.

    Attributes:
        padding: as above.
    """

    name: ClassVar = ProtocolName.V2
    takes_encoded_body: ClassVar = True

    def __init__(
        self,
        model: LoadedModel,
        body: bytes | bytearray,
        encoding: str,
        header_length: int | None,
        response_encoding: str,
        limits: Limits,
        padding: int = 0,
        request_id: str = "",
        client: Peer = "",
    ) -> None:
        self.padding = padding
        self._request_id = request_id
        self._client = client
        self._model = model
        self._body = body
        self._encoding = encoding
        self._header_length = header_length
        self._response_encoding = response_encoding
        self._limits = limits
        self._dynamic_batch = has_dynamic_batch(model)
        self._document: Document | None = None
        self._description: Description | None = None
        self._request = _NOT_READ

    @classmethod
    def from_request(cls, request: Request, model: LoadedModel, limits: Limits) -> "V2Exchange":
        """Return the exchange of a request whose body has not arrived yet.

        Raises:
            ServiceError: 400 `invalid_header`, 501 `unsupported_encoding`.
        """
        context = context_of(request)
        headers = context.headers  # most requests have neither, and need not be asked further
        encoding = response_encoding = IDENTITY
        if b"content-encoding" in headers:
            encoding = parse_encoding(context.header(b"content-encoding"))
        if b"accept-encoding" in headers:
            response_encoding = choose_encoding(context.header(b"accept-encoding"))
        header_length = parse_header_length(context.header(_HEADER))
        padding = padding_of(header_length) if encoding == IDENTITY else 0
        return cls(
            model,
            b"",
            encoding,
            header_length,
            response_encoding,
            limits,
            padding,
            context.request_id,
            context.client,
        )

    def is_unpacked_first(self, size: int) -> bool:
        """Return whether the body has to be decompressed, or has a large JSON part that may have to be parsed."""
        json_size = size if self._header_length is None else self._header_length
        return self.is_compressed or json_size > SMALL_BYTES

    def call(self, body: bytes, received_ns: int) -> Job[EncodedResponse]:
        """Return the call of a body, with the padding in front.

        Raises:
            ServiceError: 400 or 413.
        """
        self._body = body
        del body  # it is dropped once it is decoded
        parameters = self.scheduling()
        return Job(
            model=self._model,
            protocol=self.name,
            request_id=self._request_id,
            decode=self.decode,
            encode=self.encode,
            timestamps=Timestamps(received_ns),
            timeout=parameters.timeout,
            priority=parameters.priority,
            client=self._client,
        )

    @property
    def is_compressed(self) -> bool:
        """Whether the body has to be decompressed, which the event loop should not do."""
        return self._encoding != IDENTITY

    def scheduling(self) -> InferParameters:
        """Return the parameters of the request; of a large one perhaps only its timeout and priority.

        A large JSON part is parsed here only if it mentions one of these; otherwise a worker parses it. A short one is
        also validated here.

        Raises:
            ServiceError: 400 or 413.
        """
        if self._header_length == RAW:
            return InferParameters()
        text, body = self._unpack()
        if self._header_length is not None and len(text) <= _BRIEF:
            self._description = describe(self._model, bytes(text))
            return self._description.request.parameters
        if len(text) > SMALL_BYTES and not _mentions(body, _SCHEDULING):
            return InferParameters()
        document = _parse(text, self._limits)
        if len(text) <= SMALL_BYTES or not self.is_compressed:
            self._document = document
        return request_parameters(document)

    def _unpack(self) -> tuple[memoryview, bytes | bytearray]:
        """Return the JSON part and the whole body, decompressed for the first time.

        What came compressed is kept as it came, as it is what counts towards `--max-buffered-bytes`, unless it is
        hardly larger now.

        Raises:
            ServiceError: as `decompress`.
        """
        body = self._body
        if self.is_compressed:
            body = decompress(body, self._encoding, self._limits)
        text, _ = split(body, self._header_length, self.padding)
        self._limits.check_json(len(text))
        if self.is_compressed and len(body) <= max(SMALL_BYTES, _LITTLE_MORE * len(self._body)):
            self._body, self._encoding = body, IDENTITY
        return text, body

    def decode(self) -> Decoded:
        """Return the inputs of the graph and what to trace; drop the body, except for memory that the inputs share.

        Raises:
            ServiceError: the body does not fit the model.
            NeedsDecoderError: the body is large, and this thread leaves those to others, which call this again.
        """
        packed = self._body
        try:
            return self._decode()
        except NeedsDecoderError:
            self._body = packed  # others start again
            raise

    def _decode(self) -> Decoded:
        body = self._body
        if self._encoding != IDENTITY:
            body = decompress(body, self._encoding, self._limits)
        text, data = split(body, self._header_length, self.padding)
        self._body = b""
        if self._description is not None:
            decoded = self._read_described(self._description, data)
        else:
            decoded = self._read(text, data)
        parameters = self._request.parameters
        return replace(decoded, options=Options(trace=parameters.trace or TraceLevel.OFF, capture=()))

    def encode(self, result: RunResult) -> EncodedResponse:
        """Return the response.

        Raises:
            ServiceError: 400 if the run lacks an output that was asked for, or the protocol cannot express one; 413
                `response_too_large`.
        """
        request, outputs = self._request, result.outputs
        description = self._description
        is_plain = result.trace is None and self._response_encoding == IDENTITY
        if description is not None:
            response = description.respond(outputs) if is_plain else None
            if response is not None:
                return response
        selected = select_outputs(
            request.outputs, outputs, self._model.graph.outputs, request.parameters.binary_output
        )
        response = write_response(self._head(result.trace), selected, self._model.config.labels, self._limits)
        response = compressed(response, self._response_encoding)
        if is_plain and description is not None and _are_sent_as_they_are(selected):
            description.remember_response(outputs, [output.array for output in selected], response)
        return response

    def _read(self, text: memoryview, data: memoryview) -> Decoded:
        """Return the inputs of a request that is read for the first time."""
        graph, config = self._model.graph, self._model.config
        if self._header_length == RAW:
            tensor, data = raw_input(data, graph.inputs, config, self._dynamic_batch)
            request = InferRequest(None, InferParameters(binary_output=True), (tensor,))
        else:
            request = parse_request(self._document or _parse(text, self._limits))
        self._document = None
        self._request = InferRequest(request.id, request.parameters, (), request.outputs)
        return self._bind(request, data)

    def _read_described(self, description: Description, data: memoryview) -> Decoded:
        """Return the inputs of a request whose JSON part may have been read before."""
        self._request = description.request
        inputs = description.read(data)
        if inputs is not None:
            return Decoded(inputs)
        decoded = self._bind(description.request, data)
        description.remember_inputs(self._model.graph.inputs)
        return decoded

    def _bind(self, request: InferRequest, data: memoryview) -> Decoded:
        graph, config = self._model.graph, self._model.config
        check_names(request.outputs, graph.outputs)
        parts = distribute(request.inputs, data)
        return read_inputs(request.inputs, parts, graph.inputs, config, self._dynamic_batch, self._limits)

    def _head(self, trace: RunTrace | None) -> Document:
        """Return the members of the response before its outputs."""
        request = self._request
        head: Document = {} if request.id is None else {"id": request.id}
        head |= {"model_name": self._model.name, "model_version": self._model.version}
        if trace is not None and request.parameters.trace:
            head["parameters"] = {"trace": describe_trace(trace)}
        return head


def _parse(text: bytes | memoryview, limits: Limits) -> Document:
    return parse_object(text, "the JSON part of the body", limits)


def _are_sent_as_they_are(selected: Sequence[SelectedOutput]) -> bool:
    return all(output.requested.binary and not output.requested.classes for output in selected)


def _mentions(body: bytes | bytearray, words: tuple[bytes, ...]) -> bool:
    """Return whether one of some quoted words occurs; searching by quotes is fast, as a body of numbers has few."""
    start = _find(body, b'"', 0)
    for _ in range(_MAX_QUOTES):
        if start < 0:
            return False
        if body.startswith(words, start):
            return True
        start = _find(body, b'"', start + 1)
    return start >= 0 and any(_find(body, word, start) >= 0 for word in words)


def _find(body: bytes | bytearray, word: bytes, start: int) -> int:
    """Return where a word occurs next; -1 where it does not."""
    while start < len(body):
        found = body.find(word, start, start + _WINDOW)
        if found >= 0:
            return found
        start += _WINDOW - len(word) + 1
    return -1
