"""What is read without a parser of messages is what the parser of protobuf reads, whatever a message looks like."""

from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import ServiceError
from service.grpc.infer_request import raw_contents, read_request
from service.grpc.inference import read_message
from service.grpc.messages import ModelInferRequest
from service.grpc.wire import BYTES, FIXED32, FIXED64, VARINT, varint
from service.v2.request import InputTensor

FIELDS = {
    "BOOL": ("bool_contents", np.bool_),
    "INT8": ("int_contents", np.int8),
    "INT16": ("int_contents", np.int16),
    "INT32": ("int_contents", np.int32),
    "INT64": ("int64_contents", np.int64),
    "UINT8": ("uint_contents", np.uint8),
    "UINT16": ("uint_contents", np.uint16),
    "UINT32": ("uint_contents", np.uint32),
    "UINT64": ("uint64_contents", np.uint64),
    "FP32": ("fp32_contents", np.float32),
    "FP64": ("fp64_contents", np.float64),
    "BYTES": ("bytes_contents", None),
}
"""Datatype -> field of an `InferTensorContents`, and what its elements are."""
NUMBERS = {name: number for number, name in enumerate(dict.fromkeys(name for name, _ in FIELDS.values()), 1)}


def long_varint(value: int, more: int) -> bytes:
    """Return a varint with more bytes than it needs."""
    written = bytearray(varint(value))
    for _ in range(min(more, 10 - len(written))):
        written[-1] |= 0x80
        written.append(0)
    return bytes(written)


numbers = st.one_of(
    st.integers(0, 127), st.integers(0, (1 << 64) - 1), st.sampled_from([1 << 31, (1 << 64) - 1, 1 << 63])
)
varints = st.builds(long_varint, numbers, st.sampled_from([0, 0, 0, 1, 9]))


def field(number: int, kind: int, value: bytes, more: int = 0) -> bytes:
    length = long_varint(len(value), more) if kind == BYTES else b""
    return long_varint(number << 3 | kind, min(more, 3)) + length + value


def values(kind: int) -> st.SearchStrategy[bytes]:
    if kind == VARINT:
        return varints
    if kind == BYTES:
        packed = st.lists(varints, max_size=4).map(b"".join)
        return st.binary(max_size=16) | packed | st.binary(min_size=8, max_size=8)
    size = 4 if kind == FIXED32 else 8
    return st.binary(min_size=size, max_size=size)


def some(most: int) -> st.SearchStrategy[bytes]:
    """Fields of any number and any wire type."""
    kinds = st.sampled_from([VARINT, FIXED64, BYTES, FIXED32])
    return st.tuples(st.integers(1, most), kinds, st.sampled_from([0, 0, 0, 1, 3])).flatmap(
        lambda chosen: values(chosen[1]).map(lambda value: field(chosen[0], chosen[1], value, chosen[2]))
    )


def joined(pieces: st.SearchStrategy[bytes], most: int) -> st.SearchStrategy[bytes]:
    return st.lists(pieces, max_size=most).map(b"".join)


@st.composite
def tensors(draw: st.DrawFn) -> bytes:
    """An input that most likely is one: name, datatype, shape, contents of that type, and more among them."""
    datatype = draw(st.sampled_from([*FIELDS, "FP16"]))
    number = NUMBERS.get(FIELDS.get(datatype, ("",))[0], 6)
    kind = {6: FIXED32, 7: FIXED64, 8: BYTES}.get(number, VARINT)
    found = draw(st.lists(values(kind), max_size=4))
    packed = 0 if kind == BYTES else draw(st.integers(0, len(found)))
    parts = [field(number, BYTES, b"".join(found[:packed]))] if packed else []
    parts += [field(number, kind, value) for value in found[packed:]]
    parts += draw(st.lists(some(9), max_size=1)) if draw(st.booleans()) else []
    cut = draw(st.integers(0, len(parts)))  # one message may come in several fields
    pieces = [
        field(1, BYTES, b"in"),
        field(2, BYTES, datatype.encode()),
        draw(st.sampled_from([field(3, VARINT, varint(len(found))), field(3, BYTES, b"\x01\x02")])),
        field(5, BYTES, b"".join(parts[:cut])),
        draw(joined(some(8), 1)) if draw(st.booleans()) else b"",
        field(5, BYTES, b"".join(parts[cut:])) if cut < len(parts) else b"",
    ]
    order = draw(st.permutations(pieces)) if draw(st.booleans()) else pieces
    return field(5, BYTES, b"".join(order), draw(st.sampled_from([0, 0, 2])))


messages = st.tuples(
    st.just(field(1, BYTES, b"model")),
    joined(tensors(), 2),
    joined(some(9), 1),
    st.just(b"") | joined(st.binary(max_size=12).map(lambda value: field(7, BYTES, value)), 2),
    joined(st.sampled_from([field(3, BYTES, b"own"), field(2, BYTES, b"1"), field(1, BYTES, b"other")]), 2),
).map(b"".join)


def elements_of(entry: Any, tensor: InputTensor) -> bytes:
    """Return the elements of an input as protobuf reads them, in the form of raw contents."""
    if tensor.datatype not in FIELDS:
        return b""
    name, dtype = FIELDS[tensor.datatype]
    found = list(getattr(entry.contents, name))
    if dtype is None:
        return b"".join(len(text).to_bytes(4, "little") + text for text in found)
    return np.array(found, dtype).tobytes()


@settings(max_examples=400)
@given(messages)
def test_what_is_accepted_means_what_protobuf_reads(data: bytes) -> None:
    try:
        message, raw = read_message(data)
        request = read_request(message, raw)
        elements = [
            raw_contents(tensor, entry.contents)
            for tensor, entry in zip(request.inputs, message.inputs, strict=True)
            if not raw
        ]
        expected = ModelInferRequest.FromString(data)
    except (ServiceError, DecodeError):
        return
    names = expected.model_name, expected.model_version, expected.id
    assert (message.model_name, message.model_version, message.id) == names
    assert [bytes(part) for part in raw] == list(expected.raw_input_contents)
    described = [(tensor.name, tensor.datatype, list(tensor.shape)) for tensor in request.inputs]
    assert described == [(entry.name, entry.datatype, list(entry.shape)) for entry in expected.inputs]
    if not raw:
        wanted = [elements_of(*pair) for pair in zip(expected.inputs, request.inputs, strict=True)]
        assert [bytes(part) for part in elements] == wanted
