"""What a request says besides its tensors, and what is remembered of it.

Clients send the same names, datatypes and shapes with each request, and other numbers behind them. Once such a request
has been answered in the usual way, it is known which arrays the next one has, and how its response begins.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from engine import Array, Port
from service.grpc.wire import prefix
from service.v2.binary import write_array
from service.v2.datatypes import BF16, BOOL, BYTES, DTYPES, is_complex
from service.v2.ports import find_port
from service.v2.request import InferRequest

ID, RAW = 3, 6
"""Numbers of fields of a `ModelInferResponse`."""
_MOST_RESPONSES = 16
"""Answers, by the shapes of the outputs, that are remembered of each form."""
_CONVERTED = frozenset({BOOL, BF16, BYTES})
"""Datatypes whose bytes are not those of the array: they are not remembered."""


class _InputPlace(NamedTuple):
    """Which of the raw contents an input of the graph is, and what it holds."""

    operand: str
    position: int
    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]


class _ResponseForm(NamedTuple):
    """A response without id and arrays: its head, and for each array its index and what stands before its bytes."""

    head: bytes
    outputs: tuple[tuple[int, bytes], ...]


class InferForm:
    """What a request says besides its tensors, for one model. Any thread may use it.

    Args:
        request: what it says.

    Attributes:
        request: what it says.
    """

    __slots__ = ("_places", "_responses", "request")

    def __init__(self, request: InferRequest) -> None:
        self.request = request
        self._places: tuple[_InputPlace, ...] | None = None
        self._responses: dict[tuple[Any, ...], _ResponseForm] = {}

    def read(self, raw: Sequence[memoryview]) -> dict[str, Array] | None:
        """Return the inputs of the graph as views of raw contents, copied where they are not aligned.

        None where they have to be read in the usual way.
        """
        if self._places is None:
            return None
        inputs = {}
        for place in self._places:
            array = np.frombuffer(raw[place.position], place.dtype)
            if not array.flags.aligned:
                array = array.copy()
            inputs[place.operand] = array.reshape(place.shape)
        return inputs

    def remember_inputs(self, ports: Sequence[Port]) -> None:
        """Remember which inputs the raw contents are; to be called when a request was read without an error.

        Args:
            ports: the graph's inputs.
        """
        places = {}
        for index, tensor in enumerate(self.request.inputs):
            port = ports[find_port(ports, tensor.name, "input")]
            if tensor.datatype in _CONVERTED or is_complex(port):
                return
            places[port.operand] = _InputPlace(port.operand, index, DTYPES[tensor.datatype], tensor.shape)
        self._places = tuple(places[port.operand] for port in ports)

    def respond(self, own_id: str, outputs: Sequence[Array]) -> bytes | None:
        """Return the response with a run's outputs; None where it has to be written in the usual way.

        Args:
            own_id: the client's id of the request; empty where there is none.
            outputs: the outputs.
        """
        form = self._responses.get(_key(outputs))
        if form is None:
            return None
        pieces: list[bytes | memoryview] = [form.head, id_field(own_id)]
        for index, before in form.outputs:
            pieces += before, write_array(outputs[index], "")
        return b"".join(pieces)

    def remember_response(self, outputs: Sequence[Array], sent: Sequence[Array], head: bytes) -> None:
        """Remember how a response begins whose outputs are all sent as they are.

        Not where two outputs are one array: a layer that finds nothing to change gives its input itself, so that of
        other numbers they may be two.

        Args:
            outputs: the outputs of its run.
            sent: those that it has, in its order.
            head: the message without its id and the raw contents.
        """
        if len(set(map(id, outputs))) < len(outputs) or len(self._responses) >= _MOST_RESPONSES:
            return
        if not all(any(array is output for output in outputs) for array in sent):
            return  # they were converted
        indices = [next(index for index, output in enumerate(outputs) if output is array) for array in sent]
        places = tuple((index, prefix(RAW, outputs[index].nbytes)) for index in indices)
        self._responses[_key(outputs)] = _ResponseForm(head, places)


def id_field(own_id: str) -> bytes:
    """Return the field of a response that repeats the client's id; nothing where there is none."""
    encoded = own_id.encode()
    return prefix(ID, len(encoded)) + encoded if encoded else b""


def _key(outputs: Sequence[Array]) -> tuple[Any, ...]:
    return tuple([(array.shape, array.dtype) for array in outputs])
