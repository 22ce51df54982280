"""One inference request of the protocol: from its body to the graph's inputs, and from a run to its answer."""

from functools import lru_cache

from engine import TraceLevel
from service.codec import Decoded, Options, describe_trace
from service.config.limits import Limits
from service.repository.loaded_model import LoadedModel
from service.scheduling.answer import Answer
from service.scheduling.call import RunOutcome
from service.v2.batching import is_batch_open
from service.v2.binary import split
from service.v2.compression import IDENTITY, decompress
from service.v2.document import Document, parse_object
from service.v2.inputs import read_inputs
from service.v2.parameters import InferParameters
from service.v2.raw import raw_input
from service.v2.request import InferRequest, RequestedOutput, parse_request, request_parameters
from service.v2.response import check_names, compressed, select_outputs, write_answer

RAW = 0
"""Length of the JSON part that tells that there is none: the whole body is one input."""
_BRIEF = 1 << 10
"""Bytes of a JSON part that is remembered where it describes binary data: clients send the same again and again."""
_REMEMBERED = 256
_SMALL = 1 << 16
"""Bytes of JSON that are parsed before the request is queued; larger parts are so only where they must be."""
_SCHEDULING = (b'"timeout"', b'"priority"')
_MOST_QUOTES = 1000


class Exchange:
    """An inference request and its answer.

    `scheduling` may be called first, then `decode`, then `encode`, each once, by one thread at a time.

    Args:
        model: the model.
        body: the request's whole body.
        encoding: its content coding.
        header_length: length of its JSON part; None where it is nothing else, `RAW` where it has none.
        answer_encoding: content coding of the answer.
        limits: how much the request may ask for.
        padding: how many zero bytes stand before the body; none before a compressed one.
    """

    def __init__(
        self,
        model: LoadedModel,
        body: bytes | bytearray,
        encoding: str,
        header_length: int | None,
        answer_encoding: str,
        limits: Limits,
        padding: int = 0,
    ) -> None:
        self._model = model
        self._body = body
        self._encoding = encoding
        self._header_length = header_length
        self._answer_encoding = answer_encoding
        self._limits = limits
        self._padding = padding
        self._open_batch = is_batch_open(model)
        self._document: Document | None = None
        self._described: InferRequest | None = None
        self._request: InferRequest | None = None

    @property
    def is_compressed(self) -> bool:
        """Whether the body has to be unpacked, which is no work for the event loop."""
        return self._encoding != IDENTITY

    def scheduling(self) -> InferParameters:
        """Return what the request says of its timeout and priority; its other parameters may be left out.

        A large JSON part is parsed only where these words occur in it: a worker does it later. A brief one is checked
        as well.

        Raises:
            ServiceError: 400 or 413.
        """
        if self._header_length == RAW:
            return InferParameters()
        body = decompress(self._body, self._encoding, self._limits)
        text, _ = split(body, self._header_length, self._padding)
        if self._header_length is not None and len(text) <= _BRIEF:
            self._described = _parse_brief(bytes(text))
            return self._described.parameters
        if len(text) > _SMALL and not _mentions(body, _SCHEDULING):
            return InferParameters()
        document = _parse(text)
        if len(text) <= _SMALL or not self.is_compressed:
            self._document = document
        return request_parameters(document)

    def decode(self) -> Decoded:
        """Return the graph's inputs, and what to trace; the body is dropped, but for what the inputs are views of.

        Raises:
            ServiceError: the body is not what the model can take.
        """
        body = decompress(self._body, self._encoding, self._limits)
        self._body = b""
        text, data = split(body, self._header_length, self._padding)
        graph, config = self._model.graph, self._model.config
        if self._header_length == RAW:
            tensor, data = raw_input(data, graph.inputs, config, self._open_batch)
            request = InferRequest(None, InferParameters(binary_output=True), (tensor,))
        else:
            request = self._described or parse_request(self._document or _parse(text))
        self._document = self._described = None
        check_names(request.outputs, graph.outputs)
        inputs = read_inputs(request.inputs, data, graph.inputs, config, self._open_batch, self._limits)
        self._request = InferRequest(request.id, request.parameters, (), request.outputs)
        return Decoded(inputs, Options(trace=request.parameters.trace or TraceLevel.OFF, capture=()))

    def encode(self, outcome: RunOutcome) -> Answer:
        """Return the answer.

        Raises:
            ServiceError: 400 where the run has not the outputs that were asked for, or not in a form to be sent.
        """
        request = self._request
        if request is None:
            raise RuntimeError("an answer is encoded before its request is decoded")
        head: Document = {"model_name": self._model.name, "model_version": self._model.version}
        if request.id is not None:
            head = {"id": request.id, **head}
        if outcome.result.trace is not None and request.parameters.trace:
            head["parameters"] = {"trace": describe_trace(outcome.result.trace)}
        wanted: tuple[RequestedOutput, ...] = request.outputs
        binary = request.parameters.binary_output
        selected = select_outputs(wanted, outcome.result.outputs, self._model.graph.outputs, binary)
        return compressed(write_answer(head, selected, self._model.config.labels), self._answer_encoding)


def _parse(text: bytes | memoryview) -> Document:
    return parse_object(text, "the JSON part of the body")


@lru_cache(maxsize=_REMEMBERED)
def _parse_brief(text: bytes) -> InferRequest:
    return parse_request(_parse(text))


def _mentions(body: bytes | bytearray, words: tuple[bytes, ...]) -> bool:
    """Tell whether one of some words in quotes occurs: from quote to quote, of which a body of numbers has few."""
    start = body.find(b'"')
    for _ in range(_MOST_QUOTES):
        if start < 0:
            return False
        if body.startswith(words, start):
            return True
        start = body.find(b'"', start + 1)
    return any(word in body for word in words)
