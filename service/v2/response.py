"""What a run gave -> the bytes of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from engine import Array, Port
from service.codec.json_array import json_data
from service.errors import ServiceError
from service.scheduling.answer import Answer
from service.v2.binary import HEADER, write_array, write_strings
from service.v2.classification import classify
from service.v2.compression import IDENTITY, compress
from service.v2.datatypes import BYTES, outgoing
from service.v2.ports import find_port
from service.v2.request import RequestedOutput

BINARY_TYPE = "application/octet-stream"
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Chosen:
    """An output that is sent.

    Attributes:
        name: its name in the answer: what the client called it.
        array: its elements.
        port: what the file declares of it; None where a run alone could tell that it exists.
        wanted: how the client wants it.
    """

    name: str
    array: Array
    port: Port | None
    wanted: RequestedOutput


def choose(
    wanted: Sequence[RequestedOutput], arrays: Sequence[Array], ports: Sequence[Port], binary: bool
) -> list[Chosen]:
    """Pick the outputs that a request asks for, in its order; all of them where it names none.

    Args:
        wanted: what the request asks for.
        arrays: the run's outputs.
        ports: the graph's outputs. An operand that carries a list may make more arrays than ports: then they are
            called `output_0`, `output_1`, …
        binary: whether outputs that the request does not name are sent as binary data.

    Raises:
        ServiceError: 400 `unknown_output` or `ambiguous_name`.
    """
    known: list[Port | None] = list(ports) if len(ports) == len(arrays) else [None] * len(arrays)
    names = [f"output_{index}" if port is None else port.operand for index, port in enumerate(known)]
    if not wanted:
        every = (RequestedOutput(name, binary) for name in names)
        return [Chosen(*entry) for entry in zip(names, arrays, known, every, strict=True)]
    chosen = []
    for output in wanted:
        index = names.index(output.name) if output.name in names else _find(ports, output.name, names)
        chosen.append(Chosen(output.name, arrays[index], known[index], output))
    return chosen


def check_names(wanted: Sequence[RequestedOutput], ports: Sequence[Port]) -> None:
    """Check the names of requested outputs as far as that is possible before a run.

    Raises:
        ServiceError: 400 `unknown_output`, `ambiguous_name` or `duplicate_output`.
    """
    seen = set()
    for output in wanted:
        if output.name in seen:
            message = f"output {output.name[:80]!r} is asked for twice"
            raise ServiceError(400, "duplicate_output", message, {"name": output.name[:80]})
        seen.add(output.name)
        if not output.name.startswith("output_"):
            find_port(ports, output.name, "output")


def write_answer(head: dict[str, Any], chosen: Sequence[Chosen], labels: Sequence[str] | None) -> Answer:
    """Put an answer together; not compressed yet.

    Args:
        head: its members before `outputs`.
        chosen: the outputs.
        labels: names of the classes, for outputs that are to be classified.

    Raises:
        ServiceError: 400 `unsupported_output` or `no_classes`.
    """
    outputs, buffers = [], []
    for output in chosen:
        described, buffer = _output(output, labels)
        outputs.append(described)
        if buffer is not None:
            buffers.append(buffer)
    text = orjson.dumps({**head, "outputs": outputs}, option=orjson.OPT_SERIALIZE_NUMPY)
    if not any(output.wanted.binary for output in chosen):
        return Answer((text,), JSON_TYPE)
    return Answer((text, *buffers), BINARY_TYPE, {HEADER: str(len(text))})


def compressed(answer: Answer, encoding: str) -> Answer:
    """Apply a content coding to an answer, where that is worth it."""
    headers = {**answer.headers, "Vary": "Accept-Encoding"}
    if encoding == IDENTITY:
        return Answer(answer.pieces, answer.media_type, headers)
    body, applied = compress(answer.body, encoding)
    if applied != IDENTITY:
        headers["Content-Encoding"] = applied
    return Answer((body,), answer.media_type, headers)


def _find(ports: Sequence[Port], name: str, names: Sequence[str]) -> int:
    if len(ports) == len(names):
        return find_port(ports, name, "output")
    message = f"this run has no output {name[:80]!r}; it has {', '.join(names)}"
    raise ServiceError(400, "unknown_output", message, {"name": name[:80], "known": list(names)})


def _output(output: Chosen, labels: Sequence[str] | None) -> tuple[dict[str, Any], bytes | memoryview | None]:
    """Return the JSON of an output, and its binary data where it comes so."""
    if output.wanted.classes:
        array = classify(output.array, output.wanted.classes, labels, output.name)
        datatype = BYTES
    else:
        datatype, array = outgoing(output.array, output.port.dtype if output.port else None)
    described: dict[str, Any] = {"name": output.name, "datatype": datatype, "shape": list(array.shape)}
    if not output.wanted.binary:
        described["data"] = array.ravel().tolist() if datatype == BYTES else json_data(array.reshape(-1))
        return described, None
    data = _bytes(array, datatype)
    described["parameters"] = {"binary_data_size": len(data)}
    return described, data


def _bytes(array: Array, datatype: str) -> bytes | memoryview:
    if datatype == BYTES:
        return write_strings(text.encode() for text in array.ravel().tolist())
    return write_array(array, datatype)
