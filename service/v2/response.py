"""Converts the outputs of a run to the bytes of a response."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from engine import Array, Port
from service.codec.json_text import PIECE_ELEMENTS, dump_pieces, json_data
from service.codec.response import EncodedResponse
from service.config.limits import Limits
from service.errors import ServiceError, did_you_mean
from service.v2.binary import HEADER, write_array, write_strings
from service.v2.classification import classify
from service.v2.compression import IDENTITY, compress
from service.v2.datatypes import BYTES, outgoing
from service.v2.ports import find_port
from service.v2.request import RequestedOutput

BINARY_TYPE = "application/octet-stream"
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class SelectedOutput:
    """An output that is sent.

    Attributes:
        name: its name in the response: the one that the client uses.
        array: its elements.
        port: what the file declares about it; None if only the run could show that it exists.
        requested: how the client wants it.
    """

    name: str
    array: Array
    port: Port | None
    requested: RequestedOutput


def select_outputs(
    requested: Sequence[RequestedOutput], arrays: Sequence[Array], ports: Sequence[Port], binary: bool
) -> list[SelectedOutput]:
    """Select the outputs that a request asks for, in its order; all outputs if it names none.

    Args:
        requested: the outputs that the request asks for.
        arrays: the run's outputs.
        ports: the graph's outputs. If an operand holds a list, there may be more arrays than ports, which are then
            called `output_0`, `output_1`, …
        binary: whether outputs are sent as binary data if the request names none.

    Raises:
        ServiceError: 400 `unknown_output` or `ambiguous_name`.
    """
    known: list[Port | None] = list(ports) if len(ports) == len(arrays) else [None] * len(arrays)
    names = [f"output_{index}" if port is None else port.operand for index, port in enumerate(known)]
    if not requested:
        every = (RequestedOutput(name, binary) for name in names)
        return [SelectedOutput(*entry) for entry in zip(names, arrays, known, every, strict=True)]
    selected = []
    for output in requested:
        index = names.index(output.name) if output.name in names else _find(ports, output.name, names)
        selected.append(SelectedOutput(output.name, arrays[index], known[index], output))
    return selected


def check_names(requested: Sequence[RequestedOutput], ports: Sequence[Port]) -> None:
    """Check the names of requested outputs as far as that is possible before a run.

    Raises:
        ServiceError: 400 `unknown_output`, `ambiguous_name` or `duplicate_output`.
    """
    seen = set()
    for output in requested:
        if output.name in seen:
            message = f"output {output.name[:80]!r} is asked for twice"
            raise ServiceError(400, "duplicate_output", message, {"name": output.name[:80]})
        seen.add(output.name)
        if not output.name.startswith("output_"):
            find_port(ports, output.name, "output")


def write_response(
    head: dict[str, Any],
    selected: Sequence[SelectedOutput],
    labels: Sequence[str] | None,
    limits: Limits,
) -> EncodedResponse:
    """Write a response, not compressed yet.

    Args:
        head: its members before `outputs`.
        selected: the outputs.
        labels: names of the classes, for outputs that are sent as classes.
        limits: how large a response may be.

    Raises:
        ServiceError: 400 `unsupported_output` or `no_classes`, 413 `response_too_large`.
    """
    limits.check_response(sum(output.array.nbytes for output in selected))
    outputs, buffers = [], []
    for output in selected:
        described, buffer = write_output(output, labels)
        outputs.append(described)
        if buffer is not None:
            buffers.append(buffer)
    document = {**head, "outputs": outputs}
    texts = [output.array for output in selected if not output.requested.binary]
    if any(array.size > PIECE_ELEMENTS for array in texts):
        text = dump_pieces(document, limits)
    else:
        text = [orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)]
    if not any(output.requested.binary for output in selected):
        return EncodedResponse(text, JSON_TYPE)
    return EncodedResponse((*text, *buffers), BINARY_TYPE, {HEADER: str(sum(map(len, text)))})


def compressed(response: EncodedResponse, encoding: str) -> EncodedResponse:
    """Compress a response if that makes it sufficiently smaller."""
    headers = {**response.headers, "Vary": "Accept-Encoding"}
    if encoding == IDENTITY:
        return EncodedResponse(response.pieces, response.media_type, headers)
    pieces, applied = compress(response.pieces, encoding)
    if applied != IDENTITY:
        headers["Content-Encoding"] = applied
    return EncodedResponse(pieces, response.media_type, headers)


def _find(ports: Sequence[Port], name: str, names: Sequence[str]) -> int:
    if len(ports) == len(names):
        return find_port(ports, name, "output")
    message = f"this run has no output {name[:80]!r}; it has {', '.join(names)}{did_you_mean(name, names)}"
    raise ServiceError(400, "unknown_output", message, {"name": name[:80], "known": list(names)})


def write_output(
    output: SelectedOutput, labels: Sequence[str] | None
) -> tuple[dict[str, Any], bytes | memoryview | None]:
    """Return the JSON of an output, and its binary data if it is sent as such.

    Args:
        output: the output.
        labels: names of the classes, for an output that is sent as classes.

    Raises:
        ServiceError: 400 `unsupported_output` or `no_classes`.
    """
    if output.requested.classes:
        array = classify(output.array, output.requested.classes, labels, output.name)
        datatype = BYTES
    else:
        datatype, array = outgoing(output.array, output.port.dtype if output.port else None)
    described: dict[str, Any] = {"name": output.name, "datatype": datatype, "shape": list(array.shape)}
    if not output.requested.binary:
        flat = array.reshape(-1)
        if datatype == BYTES:
            described["data"] = flat.tolist()
        else:
            described["data"] = flat if flat.size > PIECE_ELEMENTS else json_data(flat)
        return described, None
    data = _bytes(array, datatype)
    described["parameters"] = {"binary_data_size": len(data)}
    return described, data


def _bytes(array: Array, datatype: str) -> bytes | memoryview:
    if datatype == BYTES:
        return write_strings(text.encode() for text in array.ravel().tolist())
    return write_array(array, datatype)
