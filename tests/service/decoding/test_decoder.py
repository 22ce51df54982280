"""Decoder processes: what they answer, and how they are ended and replaced."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine import Array
from service.config.image_config import ImageConfig
from service.decoding import (
    Decoder,
    DecodingStoppedError,
    NeedsDecoderError,
    large_body_decoder,
    leaving_large_bodies,
)
from service.decoding import decoder as module
from service.decoding.decoder import Decoders
from service.decoding.frames import MAX_OBJECT, read_frame, write_frame
from service.errors import ServiceError
from service.images import remote
from service.images.encoded_image import EncodedImage
from service.images.image_header import read_header
from service.images.planes import make_planes
from service.images.preparation import LARGE_PIXELS
from service.images.remote import decode_remotely
from tests.service.codec.payloads import encoded

SECONDS = 60.0
ROOT = Path(__file__).parents[3]
STUB = """
import json, os, sys, time
import numpy as np
from service.decoding import shared_file
from service.decoding.frames import read_frame, write_frame
write_frame(sys.stdout.buffer, {})
while True:
    head, data = read_frame(sys.stdin.buffer, 1 << 30)
    arguments, number = head["arguments"], head["number"]
    place, shape = arguments["place"], list(arguments["shape"])
    sides = [arguments["header"]["width"], arguments["header"]["height"]]
    if place == "hang":
        time.sleep(600)
    elif place == "die":
        os._exit(3)
    elif place == "babble":
        os.write(1, b"\\x10\\0\\0\\0" + bytes(8) + b"no JSON whatever")
    else:
        shape[0] += place == "shape"
        sides[0] += place == "resize"
        arrays = [] if place == "none" else [np.zeros(shape, "f8" if place == "wide" else "f4")]
        places = shared_file.write(int(sys.argv[1]), head["room"], arrays)
        if place == "beyond":
            places[0][2] = 1 << 20
        if place == "object":
            places[0][0] = "|O8"
        if place == "cut":
            os.ftruncate(int(sys.argv[1]), 8)
        response = {"number": number - (place == "another"), "arrays": places}
        if place == "lies":
            response["problem"] = [500, "no_error", "nothing", {}]
        write_frame(sys.stdout.buffer, response, json.dumps(sides).encode())
"""
"""A process that does what the place of an image shows it, and decodes others as black."""


@pytest.fixture
def decoder() -> Iterator[Decoder]:
    made = Decoder()
    yield made
    made.close()


@pytest.fixture
def stub() -> Iterator[Decoder]:
    made = Decoder((sys.executable, "-c", STUB))
    yield made
    made.close()


def image_of(data: bytes, place: str = "the image") -> EncodedImage:
    return EncodedImage(data, read_header(data, ("PNG", "JPEG", "WEBP", "BMP"), place), place)


def scans(count: int) -> bytes:
    """Return a progressive JPEG of 36 megapixels, and so many scans that each pass over all of it."""
    data = bytearray(encoded(noise("L"), "JPEG", progressive=True))
    frame = data.index(b"\xff\xc2")
    data[frame + 5 : frame + 9] = (6000).to_bytes(2, "big") * 2
    scan = b"\xff\xda\0\x08\x01\x01\0\x01\x01\0" + bytes(80)
    return bytes(data[:-2]) + scan * count + b"\xff\xd9"


def noise(mode: str = "RGB") -> Image.Image:
    shape = (70, 50) if mode == "L" else (70, 50, len(mode))
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, np.uint8), mode=None)


BLACK = image_of(encoded(Image.new("L", (9, 9))))


def decoded(decoder: Decoder, *images: EncodedImage, seconds: float = SECONDS, **keys: Any) -> Array:
    config = ImageConfig.model_validate({"colour": "gray", **keys})
    batch = np.full((len(images), config.channels, 8, 6), 7, np.float32)
    decode_remotely(decoder, images, config, batch, seconds)
    return batch


def process_of(decoder: Decoder) -> "subprocess.Popen[bytes]":
    assert decoder._process is not None
    return decoder._process._process


def test_images_are_as_those_that_the_server_decodes_itself(decoder: Decoder) -> None:
    keys: dict[str, Any] = {
        "colour": "bgr",
        "mean": [0.1, 0.2, 0.3],
        "resize": "fit",
        "pad": 9,
        "resample": "bicubic",
    }
    forms = [("RGB", "JPEG"), ("RGBA", "PNG"), ("RGB", "WEBP"), ("L", "BMP")]
    images = [image_of(encoded(noise(mode), form)) for mode, form in forms]
    config = ImageConfig.model_validate(keys)
    expected = np.empty((len(images), 3, 8, 6), np.float32)
    for image, out in zip(images, expected, strict=True):
        make_planes(image, config, out)
    np.testing.assert_array_equal(decoded(decoder, *images, **keys), expected)


@pytest.mark.parametrize(
    "keys",
    [
        {"resize": "crop", "shorter_side": 12},
        {"resize": "crop", "crop_fraction": 0.5},
        {"resize": "fit", "scale_up": False},
        {"resize_as": "torch", "antialias": False},
        {"resize_as": "opencv", "resample": "box"},
        {"background": [1, 2, 3]},
    ],
)
def test_it_prepares_images_as_any_configuration_says(decoder: Decoder, keys: dict[str, Any]) -> None:
    image = image_of(encoded(noise("RGBA")))
    expected = np.empty((1, 1, 8, 6), np.float32)
    make_planes(image, ImageConfig.model_validate({"colour": "gray", **keys}), expected[0])
    np.testing.assert_array_equal(decoded(decoder, image, **keys), expected)


def test_damaged_images_are_refused_and_the_process_goes_on(decoder: Decoder) -> None:
    whole = encoded(noise("L"))
    with pytest.raises(ServiceError) as caught:
        decoded(decoder, BLACK, image_of(whole[: len(whole) // 2], "image 2"))
    assert (caught.value.status, caught.value.code) == (400, "invalid_image")
    assert caught.value.message.startswith("image 2 is damaged")
    process = process_of(decoder)
    assert (decoded(decoder, BLACK) == 0).all()
    assert process_of(decoder) is process


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_memory_that_an_image_cannot_need_is_not_given(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = image_of(encoded(Image.new("L", (9000, 9000))))
    monkeypatch.setattr(module, "SPARE_BYTES", 8 << 20)
    monkeypatch.setattr(remote, "PIXEL_BYTES", 0)
    with pytest.raises(MemoryError):
        decoded(decoder, large)
    monkeypatch.undo()
    assert (decoded(decoder, large) == 0).all()


def test_a_decoder_that_hangs_is_ended_at_its_limit_and_replaced(stub: Decoder) -> None:
    decoded(stub, BLACK)
    hung = process_of(stub)
    with pytest.raises(ServiceError) as caught:
        decoded(stub, BLACK, image_of(BLACK.data, "hang"), seconds=0.2)
    assert (caught.value.status, caught.value.code) == (422, "decoding_too_long")
    assert caught.value.details == {"limit": 0.2, "unit": "seconds"}
    assert hung.returncode == -signal.SIGKILL, "it is ended, and no zombie"
    assert (decoded(stub, BLACK) == 0).all()
    assert stub.ended == {"decoding_too_long": 1, "decoder_failed": 0}


@pytest.mark.skipif(sys.platform != "linux", reason="limits the time of the processor")
def test_images_that_take_too_much_of_the_processor_are_aborted(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_FACTOR", 1000.0)
    decoded(decoder, BLACK)
    process = process_of(decoder)
    with pytest.raises(ServiceError) as caught:
        decoded(decoder, *[image_of(scans(50))] * 40, seconds=0.1)
    assert caught.value.code == "decoding_too_long"
    assert process.returncode == -signal.SIGXCPU
    assert (decoded(decoder, BLACK) == 0).all()


def test_the_system_ends_a_process_that_computes_for_too_long() -> None:
    if sys.platform == "win32":
        pytest.skip("there are no such limits")
    spin = "from service.decoding.process import limit\nlimit(0.1, 1 << 40)\nwhile True: pass"
    command = [sys.executable, "-c", spin]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGXCPU


def test_a_decoder_that_is_stopped_while_it_is_sent_an_image_is_ended(stub: Decoder) -> None:
    decoded(stub, BLACK)
    process_of(stub).send_signal(signal.SIGSTOP)
    large = image_of(encoded(Image.new("L", (2000, 2000)), "BMP"))
    with pytest.raises(ServiceError) as caught:
        decoded(stub, large, seconds=0.2)
    assert caught.value.code == "decoding_too_long"


@pytest.mark.parametrize(
    "place",
    ["die", "babble", "another", "shape", "resize", "none", "wide", "beyond", "object", "cut", "lies"],
)
def test_a_decoder_that_fails_costs_its_own_request_alone(stub: Decoder, place: str) -> None:
    with pytest.raises(ServiceError) as caught:
        decoded(stub, image_of(BLACK.data, place))
    assert (caught.value.status, caught.value.code) == (503, "decoder_failed")
    assert caught.value.headers == {"Retry-After": "1"}
    assert (decoded(stub, BLACK) == 0).all()


def test_a_response_that_was_not_read_is_never_taken_for_the_next(
    stub: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded(stub, BLACK)
    first = process_of(stub)

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(module, "read_frame", fail)
        with pytest.raises(MemoryError):
            decoded(stub, BLACK)
    assert first.returncode == -signal.SIGKILL
    assert (decoded(stub, BLACK) == 0).all()


def test_a_decoder_that_was_killed_between_requests_is_replaced_unnoticed(stub: Decoder) -> None:
    decoded(stub, BLACK)
    process_of(stub).kill()
    process_of(stub).wait()
    assert not stub.is_running
    assert (decoded(stub, BLACK) == 0).all()


@pytest.mark.parametrize("command", ["/no/such/program", "/bin/false"])
def test_a_decoder_that_cannot_be_started_is_an_error_of_the_server(command: str) -> None:
    with pytest.raises(ServiceError) as caught:
        decoded(Decoder((command,)), BLACK)
    assert (caught.value.status, caught.value.code) == (503, "decoder_failed")


def test_a_decoder_without_work_is_ended(stub: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    decoded(stub, BLACK)
    until = time.monotonic() + SECONDS
    while stub.is_running:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_process_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_API_KEYS", "secret")
    assert "secret" not in module._environment().values()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_process_ends_with_the_server() -> None:
    script = (
        "import os\n"
        "from tests.service.decoding.test_decoder import BLACK, Decoder, decoded, process_of\n"
        "decoder = Decoder()\n"
        "decoded(decoder, BLACK)\n"
        "print(process_of(decoder).pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    process = Path(f"/proc/{int(run.stdout)}/stat")
    until = time.monotonic() + SECONDS
    while process.exists() and process.read_text().split()[2] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)


def test_work_that_nobody_waits_for_ends_with_its_process(stub: Decoder) -> None:
    decoded(stub, BLACK)
    hung = process_of(stub)
    with stub.stoppable() as stop:
        threading.Timer(0.05, stop, ["the client left"]).start()
        with pytest.raises(DecodingStoppedError, match="the client left"):
            decoded(stub, image_of(BLACK.data, "hang"))
        with pytest.raises(DecodingStoppedError):
            decoded(stub, BLACK)
    assert hung.returncode == -signal.SIGKILL
    stop("too late")
    assert (decoded(stub, BLACK) == 0).all()
    assert stub.ended == {"decoding_too_long": 0, "decoder_failed": 0}


def test_small_images_never_see_it() -> None:
    assert BLACK.header.decoded_pixels < LARGE_PIXELS


def test_threads_leave_large_bodies_to_those_that_have_a_decoder() -> None:
    assert large_body_decoder() is None
    with leaving_large_bodies(), pytest.raises(NeedsDecoderError):
        large_body_decoder()


def test_the_decoder_that_was_used_last_is_used_next() -> None:
    decoders = Decoders()
    first = decoders.call(large_body_decoder)
    other = decoders.call(lambda: (large_body_decoder(), decoders.call(large_body_decoder)))[1]
    assert first is not None
    assert other is not first
    assert decoders.call(large_body_decoder) is first
    assert large_body_decoder() is None
    first._command = (sys.executable, "-c", STUB)
    assert not decoded(first, BLACK).any()
    assert decoders.running == 1
    decoders.close()
    assert decoders.running == 0


def test_messages_that_are_too_large_or_end_early_are_not_read() -> None:
    file = BytesIO()
    write_frame(file, {"a": 1}, b"data")
    whole = file.getvalue()
    assert read_frame(BytesIO(whole), 4) == ({"a": 1}, b"data")
    for size in range(len(whole)):
        with pytest.raises((EOFError, ValueError)):
            read_frame(BytesIO(whole[:size]), 4)
    with pytest.raises(ValueError, match="maxima are"):
        read_frame(BytesIO(whole), 3)
    with pytest.raises(ValueError, match="maxima are"):
        read_frame(BytesIO((MAX_OBJECT + 1).to_bytes(4, "little") + bytes(8)), 4)
    with pytest.raises(ValueError, match="no object"):
        read_frame(BytesIO(b"\x02\0\0\0" + bytes(8) + b"[]"), 4)
