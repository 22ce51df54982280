"""Messages that nobody should send: each is refused in words, and the server goes on."""

import sys
import threading
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2

from service.errors import ServiceError
from service.grpc.infer_request import read_request
from service.grpc.inference import read_message
from service.grpc.status import details_of
from service.grpc.wire import FIXED32, FIXED64, VARINT, prefix, split, varint
from tests.service.grpc.servers import RawClient, reported
from tests.service.grpc.test_streaming import STREAM
from tests.service.server.process import SOON, ServerProcess

Input = service_pb2.ModelInferRequest.InferInputTensor
FLOATS = np.array([[1, 2]], np.float32)


def message(**fields: Any) -> bytes:
    written = service_pb2.ModelInferRequest(**fields).SerializeToString()
    assert isinstance(written, bytes)
    return written


def described(name: str = "in", datatype: str = "FP32", shape: tuple[int, ...] = (1, 2)) -> Any:
    return Input(name=name, datatype=datatype, shape=shape)


SOUND = message(model_name="same_f32", inputs=[described()], raw_input_contents=[FLOATS.tobytes()])


@pytest.fixture(autouse=True)
def goes_on(raw: RawClient) -> Any:
    yield
    response = service_pb2.ModelInferResponse.FromString(raw.call(SOUND))
    assert list(response.raw_output_contents) == [FLOATS.tobytes()]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"\xff" * 40,
        SOUND[:-1],
        SOUND[:20],
        prefix(7, 1 << 40),
        prefix(1, 8) + b"same",
        prefix(1, 2) + b"\xff\xfe",
        b"\x00\x00",
        b"\x0b\x0c",
        prefix(5, 3) + prefix(1, 100),
        SOUND + prefix(4, 2) + b"\x0a\x7f",
    ],
)
def test_malformed_messages(raw: RawClient, data: bytes) -> None:
    status, code, sentence = raw.refusal(data)
    assert (status, code) in {
        ("INVALID_ARGUMENT", "invalid_message"),
        ("INVALID_ARGUMENT", "invalid_request"),
    }
    assert sentence


def refused(raw: RawClient, **fields: Any) -> tuple[str, str, str]:
    return raw.refusal(message(**{"model_name": "same_f32"} | fields))


def with_contents(**contents: Any) -> Any:
    entry = described()
    for name, values in contents.items():
        getattr(entry.contents, name).extend(values)
    return entry


def test_contents_and_shapes_that_contradict_each_other(raw: RawClient) -> None:
    data = FLOATS.tobytes()
    assert refused(raw, inputs=[described()])[1] == "wrong_size"
    assert refused(raw, inputs=[described()], raw_input_contents=[data, data])[1] == "invalid_request"
    assert refused(raw, inputs=[described()], raw_input_contents=[data + b"x"])[1] == "wrong_size"
    assert refused(raw, inputs=[], raw_input_contents=[])[1] == "missing_input"
    both = refused(raw, inputs=[with_contents(fp32_contents=[1, 2])], raw_input_contents=[data])
    assert (both[1], "raw_input_contents as well" in both[2]) == ("invalid_request", True)
    wrong = refused(raw, inputs=[with_contents(int_contents=[1, 2])])
    assert (wrong[1], "int_contents; expected fp32_contents" in wrong[2]) == ("invalid_request", True)
    assert refused(raw, inputs=[with_contents(fp32_contents=[1, 2, 3])])[1] == "wrong_size"
    assert (
        refused(raw, inputs=[described(shape=(1 << 40, 1 << 40))], raw_input_contents=[data])[1]
        == "invalid_request"
    )
    assert refused(raw, inputs=[described(shape=(-1, 2))], raw_input_contents=[data])[1] == "invalid_tensor"
    assert refused(raw, inputs=[described(shape=(1 << 30, 2))], raw_input_contents=[data])[1] in (
        "wrong_size",
        "tensor_too_large",
    )
    assert (
        refused(raw, inputs=[described(), described()], raw_input_contents=[data, data])[1]
        == "duplicate_input"
    )
    assert (
        refused(raw, inputs=[described(datatype="FP33")], raw_input_contents=[data])[1] == "invalid_request"
    )


def test_numbers_beyond_the_datatype(raw: RawClient) -> None:
    entry = described(datatype="INT8")
    entry.contents.int_contents.extend([1, 128])
    assert raw.refusal(message(model_name="same_i8", inputs=[entry]))[1] == "out_of_range"
    entry.contents.int_contents[1] = -129
    assert raw.refusal(message(model_name="same_i8", inputs=[entry]))[1] == "out_of_range"


def test_strings_whose_lengths_lie(raw: RawClient) -> None:
    images = Input(name="0", datatype="BYTES", shape=[1])
    for data in (b"", b"\x05", b"\xff\xff\xff\xff", b"\x01\x00\x00\x00ab"):
        found = raw.refusal(message(model_name="digits", inputs=[images], raw_input_contents=[data]))
        assert found[:2] == ("INVALID_ARGUMENT", "wrong_size")


def test_shared_memory_is_refused(raw: RawClient) -> None:
    entry = described()
    entry.parameters["shared_memory_region"].string_param = "mine"
    assert refused(raw, inputs=[entry])[1] == "unsupported_shared_memory"


def test_more_than_may_be_sent(raw: RawClient) -> None:
    many = b"".join(prefix(5, 0) for _ in range(9000))
    assert raw.refusal(prefix(1, 8) + b"same_f32" + many)[:2] == ("RESOURCE_EXHAUSTED", "too_many_values")
    names = [described(name=f"in{number}") for number in range(1025)]
    assert refused(raw, inputs=names)[:2] == ("RESOURCE_EXHAUSTED", "too_many_values")
    too_long = message(model_name="same_f32", raw_input_contents=[bytes(200_001)])
    assert raw.refusal(too_long)[0] == "RESOURCE_EXHAUSTED"
    assert raw.refusal(b"", method="Nothing")[0] == "UNIMPLEMENTED"


def test_many_dimensions_and_many_inputs_are_not_converted() -> None:
    dimensions = message(inputs=[described(shape=(1,) * 1_000_000)])
    inputs = message(inputs=[described()] * 1025)
    for data, code in ((dimensions, "invalid_tensor"), (inputs, "too_many_values")):
        request, raw = read_message(data)
        tracemalloc.start()
        with pytest.raises(ServiceError) as caught:
            read_request(request, raw)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert caught.value.code == code
        assert peak < 1 << 16


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has had so far."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10


@pytest.mark.parametrize("algorithm", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_messages_are_unpacked(raw: RawClient, algorithm: grpc.Compression) -> None:
    response = service_pb2.ModelInferResponse.FromString(raw.call(SOUND, compression=algorithm))
    assert list(response.raw_output_contents) == [FLOATS.tobytes()]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("algorithm", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_no_more_is_unpacked_than_a_message_may_have(
    raw: RawClient, grpc_server: ServerProcess, algorithm: grpc.Compression
) -> None:
    raw.call(SOUND, compression=algorithm)
    before = peak_bytes(grpc_server.process.pid)
    bomb = bytes(200 << 20)  # a thousand times the most that the server takes; it comes as 200 kB
    assert raw.refusal(bomb, compression=algorithm)[0] == "RESOURCE_EXHAUSTED"
    assert peak_bytes(grpc_server.process.pid) - before < 20 << 20
    call = raw.channel.stream_stream(STREAM)(iter([bomb]), timeout=SOON, compression=algorithm)
    with pytest.raises(grpc.RpcError) as ended:
        list(call)
    assert ended.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert peak_bytes(grpc_server.process.pid) - before < 20 << 20


def test_unpacked_numbers_and_parts_of_messages_mean_the_same(raw: RawClient) -> None:
    one, two = (np.float32(value).tobytes() for value in (1, 2))
    for contents in (
        varint(6 << 3 | 5) + one + varint(6 << 3 | 5) + two,
        prefix(6, 4) + one + prefix(6, 4) + two,
    ):
        entry = described().SerializeToString() + prefix(5, len(contents)) + contents
        data = message(model_name="same_f32") + prefix(5, len(entry)) + entry
        assert list(service_pb2.ModelInferResponse.FromString(raw.call(data)).raw_output_contents) == [
            FLOATS.tobytes()
        ]


def encoded(model: str, entry: Any, contents: bytes) -> bytes:
    """Return a request whose only input has the given bytes as its contents."""
    whole: bytes = entry.SerializeToString() + prefix(5, len(contents)) + contents
    return message(model_name=model) + prefix(5, len(whole)) + whole


@pytest.mark.parametrize(
    ("model", "datatype", "shape", "contents"),
    [
        ("same_i32", "INT32", (2, 2), varint(2 << 3 | FIXED32) + b"\1\0\0\0"),
        ("same_i64", "INT64", (4, 2), varint(3 << 3 | FIXED64) + b"\1" * 8),
        ("same_i64", "INT64", (1, 2), prefix(3, 1) + b"\x80" + prefix(3, 2) + b"\1\1"),
        ("same_i64", "INT64", (1, 2), prefix(3, 1) + b"\x80"),
        ("same_i64", "INT64", (1, 1), prefix(3, 12) + b"\x80" * 11 + b"\1"),
        ("same_f32", "FP32", (1, 2), (varint(6 << 3 | VARINT) + b"\x81\x81\x81\1") * 2),
        ("same_f32", "FP32", (1, 2), varint(6 << 3 | FIXED64) + bytes(8)),
        ("same_f32", "FP32", (1, 2), prefix(6, 6) + bytes(6) + prefix(6, 2) + bytes(2)),
        ("same_f64", "FP64", (1, 2), (varint(7 << 3 | FIXED32) + bytes(4)) * 4),
        ("digits", "BYTES", (1,), varint(8 << 3 | VARINT) + b"\1"),
    ],
)
def test_contents_of_another_wire_type_are_no_numbers(
    raw: RawClient, model: str, datatype: str, shape: tuple[int, ...], contents: bytes
) -> None:
    entry = Input(name="0" if model == "digits" else "in", datatype=datatype, shape=shape)
    status, code, _ = raw.refusal(encoded(model, entry, contents))
    assert (status, code) in {
        ("INVALID_ARGUMENT", "invalid_message"),
        ("INVALID_ARGUMENT", "wrong_size"),  # protobuf drops fields of a wire type that it does not expect
    }


@pytest.mark.parametrize("unit", [b"\x2a\x00", b"\x32\x00", b"\x22\x00", b"\x3a\x00"])
def test_messages_of_many_empty_fields_reach_no_parser(unit: bytes) -> None:
    with pytest.raises(ServiceError, match="the maximum is 8192") as caught:
        split(unit * (1 << 20))
    assert caught.value.code == "too_many_values"


@pytest.mark.parametrize("number", [3, 8, 15])
def test_contents_of_many_fields_reach_no_parser(number: int) -> None:
    contents = (varint(number << 3 | VARINT) + b"\1") * (1 << 16)
    for data in (encoded("same_i64", described(), contents), prefix(5, len(contents)) + contents):
        with pytest.raises(ServiceError) as caught:
            split(data)
        assert caught.value.code == "too_many_values"


def test_numbers_of_a_large_tensor_have_to_be_raw() -> None:
    packed = bytes((2 << 20) + 1)
    with pytest.raises(ServiceError, match="without raw_input_contents") as caught:
        split(encoded("same_i64", described(), prefix(3, len(packed)) + packed))
    assert caught.value.code == "too_many_values"
    picture = bytes(8 << 20)  # a string is copied, and no more
    head, raw = split(encoded("digits", described(), prefix(8, len(picture)) + picture))
    assert (len(head) > len(picture), raw) == (True, [])


@pytest.mark.parametrize("letter", ["a", "\x01", "é", "模", "🂡"])
def test_a_long_sentence_fits_into_metadata(letter: str) -> None:
    sentence = details_of(ServiceError(400, "invalid_request", letter * 5000))
    assert (letter * 500 in sentence, sentence[-3:]) == (True, "...")
    assert len(quote(sentence)) < 7500


def test_fields_that_nobody_knows_are_counted(raw: RawClient) -> None:
    data = encoded("same_f32", described(), (varint(15 << 3 | VARINT) + b"\1") * 70_000)
    assert raw.refusal(data)[:2] == ("RESOURCE_EXHAUSTED", "too_many_values")


@pytest.mark.parametrize("datatype", ["FP16", "BF16", "FP32", "BOOL"])
def test_no_contents_are_no_elements(raw: RawClient, datatype: str) -> None:
    model = f"same_{datatype.lower().replace('fp', 'f')}"
    for _ in range(2):
        response = raw.infer(model_name=model, inputs=[described(datatype=datatype, shape=(0, 2))])
        assert (list(response.outputs[0].shape), list(response.raw_output_contents)) == ([0, 2], [b""])
    one = message(model_name=model, inputs=[described(datatype=datatype)])
    assert raw.refusal(one)[1] == "wrong_size"


def test_clients_that_leave_before_their_message_and_after_it(address: str) -> None:
    for _ in range(20):
        with grpc.insecure_channel(address) as channel:
            call = channel.stream_unary("/inference.GRPCInferenceService/ModelInfer").future(
                iter(threading.Event().wait, None)
            )
            call.cancel()
            channel.unary_unary("/inference.GRPCInferenceService/ModelInfer").future(SOUND).cancel()


def test_thousands_of_calls_at_once(raw: RawClient) -> None:
    infer = raw.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    waiting = [infer.future(SOUND, timeout=SOON) for _ in range(2000)]
    endings = set()
    for call in waiting:
        error = call.exception()
        endings.add("OK" if error is None else reported(error)[:2])
    assert endings <= {"OK", ("UNAVAILABLE", "queue_full"), ("RESOURCE_EXHAUSTED", "")}
    assert "OK" in endings


CUT = st.builds(lambda cut, junk: SOUND[:cut] + junk, st.integers(0, 60), st.binary(max_size=40))


@settings(max_examples=300)
@given(data=st.binary(max_size=200) | CUT)
def test_any_bytes_are_split_or_refused(data: bytes) -> None:
    with suppress(ServiceError):
        head, raw = split(data)
        assert sum(map(len, raw)) + len(head) <= len(data)
