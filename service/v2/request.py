"""The JSON part of an inference request, checked as far as that is possible without its model."""

from collections.abc import Sized
from dataclasses import dataclass
from math import prod
from typing import Any

from service.codec.json_tensor import parse_shape
from service.config.limits import too_large
from service.errors import ServiceError, shown
from service.v2.datatypes import BYTES, DTYPES
from service.v2.document import Document, bad_request, member
from service.v2.parameters import InferParameters, parse_parameters

MAX_TENSORS = 1024
"""Maximum inputs, and outputs, that a request may name, whatever its model."""
_LARGEST = (1 << 63) - 1
_MISSING = object()


@dataclass(frozen=True, slots=True)
class InputTensor:
    """An input that a request describes.

    Attributes:
        name: the name that the client uses.
        shape: its shape.
        datatype: its datatype, one of the protocol's.
        data: its elements, if they are in the JSON part; None if they are sent as binary data.
        binary_size: number of bytes of its binary data; None if it has none.
    """

    name: str
    shape: tuple[int, ...]
    datatype: str
    data: Any
    binary_size: int | None

    @property
    def elements(self) -> int:
        """Number of elements of its shape."""
        return prod(self.shape)

    @property
    def place(self) -> str:
        """How messages refer to the input."""
        return f"input {self.name[:80]!r}"


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """An output that a request asks for.

    Attributes:
        name: the name that the client uses.
        binary: whether to send it as binary data.
        classes: number of classes to send instead of the tensor; 0 to send the tensor.
    """

    name: str
    binary: bool
    classes: int = 0


@dataclass(frozen=True, slots=True)
class InferRequest:
    """An inference request.

    Attributes:
        id: the client's id, which the response repeats; None if there is none.
        parameters: what it asks for besides inputs and outputs.
        inputs: its inputs, in the order of the request.
        outputs: the outputs that it asks for; empty for all.
    """

    id: str | None
    parameters: InferParameters
    inputs: tuple[InputTensor, ...]
    outputs: tuple[RequestedOutput, ...] = ()


def parse_request(document: Document) -> InferRequest:
    """Read an inference request.

    Raises:
        ServiceError: 400, 413 `too_many_values`.
    """
    parameters = request_parameters(document)
    inputs = member(document, "inputs", list, "")
    if inputs is None:
        raise bad_request(
            f"the request has no inputs; expected a list of them, and found {shown(list(document))}"
        )
    outputs = member(document, "outputs", list, "") or []
    check_counts(inputs, outputs)
    return InferRequest(
        id=member(document, "id", str, ""),
        parameters=parameters,
        inputs=tuple(_input(entry, f"inputs[{index}]") for index, entry in enumerate(inputs)),
        outputs=tuple(
            _output(entry, parameters.binary_output, f"outputs[{index}]")
            for index, entry in enumerate(outputs)
        ),
    )


def check_counts(inputs: Sized, outputs: Sized) -> None:
    """Check how many inputs and outputs a request names.

    Raises:
        ServiceError: 413 `too_many_values`.
    """
    for entries, unit in ((inputs, "inputs"), (outputs, "outputs")):
        if len(entries) > MAX_TENSORS:
            raise too_large("too_many_values", "the request", len(entries), MAX_TENSORS, unit)


def request_parameters(document: Document) -> InferParameters:
    """Read only the parameters of a request.

    Raises:
        ServiceError: 400.
    """
    return parse_parameters(member(document, "parameters", dict, "") or {})


def _input(entry: Any, place: str) -> InputTensor:
    name, parameters = _entry(entry, place)
    datatype = member(entry, "datatype", str, f"{place}.")
    if datatype not in DTYPES and datatype != BYTES:
        raise bad_request(
            f"{place}.datatype is {shown(datatype)}; expected one of {', '.join(DTYPES)}, {BYTES}"
        )
    if "shape" not in entry:
        raise bad_request(f"{place} has no shape")
    shape = parse_shape(entry["shape"], place)
    if prod(max(dim, 1) for dim in shape) > _LARGEST:
        raise bad_request(f"{place}: the product of shape {shown(list(shape))} overflows")
    size = _count(parameters, "binary_data_size", f"{place}.parameters.")
    data = entry.get("data", _MISSING)
    if (data is _MISSING) == (size is None):
        problem = "neither data nor" if size is None else "both data and"
        raise bad_request(f"{place} has {problem} parameters.binary_data_size; expected one of them")
    return InputTensor(name, shape, datatype, None if data is _MISSING else data, size)


def _output(entry: Any, binary: bool, place: str) -> RequestedOutput:
    name, parameters = _entry(entry, place)
    own = member(parameters, "binary_data", bool, f"{place}.parameters.")
    classes = _count(parameters, "classification", f"{place}.parameters.")
    return RequestedOutput(name, binary if own is None else own, classes or 0)


def _entry(entry: Any, place: str) -> tuple[str, Document]:
    """Return the name and the parameters of an input or output."""
    if not isinstance(entry, dict):
        raise bad_request(f"{place} is {shown(entry)}; expected an object")
    name = member(entry, "name", str, f"{place}.")
    if name is None:
        raise bad_request(f"{place} has no name")
    parameters: Document = member(entry, "parameters", dict, f"{place}.") or {}
    if "shared_memory_region" in parameters:
        message = f"{place} is in shared memory, which is not served; send the data itself"
        raise ServiceError(400, "unsupported_shared_memory", message)
    return name, parameters


def _count(parameters: Document, key: str, place: str) -> int | None:
    value: int | None = member(parameters, key, int, place)
    if value is not None and not 0 <= value <= _LARGEST:
        raise bad_request(f"{place}{key} is {shown(value)}; expected a whole number from 0")
    return value
