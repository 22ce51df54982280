"""The JSON part of a request that describes binary data, and what is remembered of it.

Clients send the same JSON part with each request, and other numbers behind it. Once such a request has its response in
the usual way, it is known where the arrays of the next one lie, and how its response begins.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from engine import Array, Port
from service.codec.response import EncodedResponse
from service.repository.loaded_model import LoadedModel
from service.v2.binary import write_array
from service.v2.datatypes import BF16, BOOL, BYTES, DTYPES, is_complex
from service.v2.document import parse_object
from service.v2.ports import find_port
from service.v2.request import InferRequest, InputTensor, parse_request

_MAX_DESCRIPTIONS = 256
"""Descriptions that are remembered of each model; those that were not sent for longest are forgotten."""
_MAX_RESPONSES = 16
"""Responses, by the shapes of the outputs, that are remembered of each description."""
_CONVERTED = frozenset({BOOL, BF16, BYTES})
"""Datatypes whose bytes are not those of the array: they are not remembered."""

_OutputForm = tuple[tuple[tuple[int, ...], "np.dtype[Any]"], ...]
"""Shape and dtype of each output of a run."""


class _InputPlace(NamedTuple):
    """Where the array of an input lies in the binary data, in bytes."""

    operand: str
    start: int
    elements: int
    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]


class _ResponseForm(NamedTuple):
    """A response without its arrays: its JSON part, the indices of the outputs that follow, and its headers."""

    text: bytes
    indices: tuple[int, ...]
    template: EncodedResponse


class Description:
    """A JSON part that describes binary data, for one model. Any thread may use it.

    Args:
        request: what it says.

    Attributes:
        request: what it says.
    """

    __slots__ = ("_places", "_responses", "_size", "request")

    def __init__(self, request: InferRequest) -> None:
        self.request = request
        self._places: tuple[_InputPlace, ...] | None = None
        self._size = 0
        self._responses: dict[_OutputForm, _ResponseForm] = {}

    def read(self, data: memoryview) -> dict[str, Array] | None:
        """Return the inputs of the graph as views of binary data; None where they have to be read in the usual way.

        Args:
            data: the binary data of a request.
        """
        if self._places is None or len(data) != self._size:
            return None
        inputs = {}
        for place in self._places:
            array = np.frombuffer(data, place.dtype, place.elements, place.start)
            if not array.flags.aligned:
                return None
            inputs[place.operand] = array.reshape(place.shape)
        return inputs

    def remember_inputs(self, ports: Sequence[Port]) -> None:
        """Remember where the inputs lie; to be called when a request has been read without an error.

        Args:
            ports: the graph's inputs.
        """
        places, start = {}, 0
        for tensor in self.request.inputs:
            port = ports[find_port(ports, tensor.name, "input")]
            if tensor.binary_size is None or tensor.datatype in _CONVERTED or is_complex(port):
                return
            places[port.operand] = _place(port, tensor, start)
            start += tensor.binary_size
        self._size = start
        self._places = tuple(places[port.operand] for port in ports)

    def respond(self, outputs: Sequence[Array]) -> EncodedResponse | None:
        """Return the response with a run's outputs; None where it has to be written in the usual way."""
        form = self._responses.get(tuple([(array.shape, array.dtype) for array in outputs]))
        if form is None:
            return None
        arrays = [write_array(outputs[index], "") for index in form.indices]
        return EncodedResponse((form.text, *arrays), form.template.media_type, form.template.headers)

    def remember_response(
        self, outputs: Sequence[Array], sent: Sequence[Array], response: EncodedResponse
    ) -> None:
        """Remember how a response begins whose outputs are all sent as binary data, as they are.

        Not where two outputs are one array: a layer that finds nothing to change gives its input itself, so that of
        other numbers they may be two.

        Args:
            outputs: the outputs of its run.
            sent: those that it has, in its order.
            response: the response, not compressed: its JSON part, then the arrays.
        """
        if len(set(map(id, outputs))) < len(outputs):
            return
        indices = [next(i for i, output in enumerate(outputs) if output is array) for array in sent]
        text, *pieces = response.pieces
        sizes = [outputs[index].nbytes for index in indices]
        if [len(piece) for piece in pieces] != sizes or len(self._responses) >= _MAX_RESPONSES:
            return
        form = tuple((array.shape, array.dtype) for array in outputs)
        self._responses[form] = _ResponseForm(
            bytes(text), tuple(indices), EncodedResponse((), response.media_type, response.headers)
        )


def describe(model: LoadedModel, text: bytes) -> Description:
    """Return the description that a JSON part is, the same one each time while it is remembered.

    Args:
        model: the model that the request asks for.
        text: the JSON part.

    Raises:
        ServiceError: 400, 413 `too_many_values`.
    """
    known = _known.get(model)
    if known is None:
        known = _known[model] = lru_cache(_MAX_DESCRIPTIONS)(_parse)
    return known(text)


def _parse(text: bytes) -> Description:
    return Description(parse_request(parse_object(text, "the JSON part of the body")))


_known: WeakKeyDictionary[LoadedModel, Callable[[bytes], Description]] = WeakKeyDictionary()


def _place(port: Port, tensor: InputTensor, start: int) -> _InputPlace:
    return _InputPlace(port.operand, start, tensor.elements, DTYPES[tensor.datatype], tensor.shape)
