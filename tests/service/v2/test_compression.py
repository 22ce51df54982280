"""Content codings."""

import gzip
import tracemalloc
import zlib
from dataclasses import replace

import numpy as np
import pytest

from service.config.limits import Limits
from service.errors import ServiceError
from service.v2.compression import (
    DEFLATE,
    GZIP,
    IDENTITY,
    WORTH_BYTES,
    choose_encoding,
    compress,
    decompress,
    parse_encoding,
)

TEXT = b"0123456789" * 50_000
LIMITS = Limits()


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def check_refused(body: bytes, encoding: str, status: int, code: str, limits: Limits = LIMITS) -> None:
    with pytest.raises(ServiceError) as caught:
        decompress(body, encoding, limits)
    assert (caught.value.status, caught.value.code) == (status, code)


@pytest.mark.parametrize("data", [b"", b"x", TEXT, bytes(200_000)], ids=len)
@pytest.mark.parametrize(
    ("encoding", "pack"),
    [(GZIP, gzip.compress), (DEFLATE, zlib.compress), (DEFLATE, bare), (IDENTITY, bytes)],
)
def test_bodies_are_unpacked(encoding: str, pack: object, data: bytes) -> None:
    assert callable(pack)
    assert decompress(pack(data), encoding, LIMITS) == data


@pytest.mark.parametrize("encoding", [GZIP, DEFLATE])
def test_body_that_unpacks_to_too_much_is_aborted(encoding: str) -> None:
    bomb = gzip.compress(bytes(50_000_000)) if encoding == GZIP else zlib.compress(bytes(50_000_000))
    limits = replace(LIMITS, body_bytes=1000)
    check_refused(bomb, encoding, 413, "body_too_large", limits)
    exact = gzip.compress(bytes(1000)) if encoding == GZIP else zlib.compress(bytes(1000))
    assert len(decompress(exact, encoding, limits)) == 1000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b"not compressed at all",
        gzip.compress(TEXT)[:-1],
        gzip.compress(TEXT)[:100],
        gzip.compress(b"x") + b"y",
        gzip.compress(TEXT) + bytes(100_000),
    ],
    ids=range(7),
)
def test_body_that_is_not_gzip(body: bytes) -> None:
    check_refused(body, GZIP, 400, "invalid_encoding")


@pytest.mark.parametrize(
    "body", [b"", b"\x78\x9c", b"{}", zlib.compress(TEXT)[:-1], zlib.compress(TEXT) + b"x"]
)
def test_body_that_is_not_deflate(body: bytes) -> None:
    check_refused(body, DEFLATE, 400, "invalid_encoding")


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        (None, IDENTITY),
        ("", IDENTITY),
        ("identity", IDENTITY),
        ("GZip", GZIP),
        ("x-gzip", GZIP),
        ("deflate ", DEFLATE),
    ],
)
def test_encoding_is_read(header: str | None, encoding: str) -> None:
    assert parse_encoding(header) == encoding


@pytest.mark.parametrize("header", ["br", "gzip, gzip", "zstd"])
def test_encoding_that_is_not_taken(header: str) -> None:
    with pytest.raises(ServiceError) as caught:
        parse_encoding(header)
    assert (caught.value.status, caught.value.code) == (501, "unsupported_encoding")


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [
        (None, IDENTITY),
        ("", IDENTITY),
        ("gzip", GZIP),
        ("deflate", DEFLATE),
        ("gzip, deflate, br", GZIP),
        ("br", IDENTITY),
        ("br, *;q=0.1", GZIP),
        ("gzip;q=0", IDENTITY),
        ("gzip;q=0, *", DEFLATE),
        ("gzip;q=0.5, deflate;q=0.8", DEFLATE),
        ("gzip;q=0.5, identity", IDENTITY),
        ("GZIP;q=1.0", GZIP),
        ("gzip;q=high", GZIP),
    ],
)
def test_responses_encoding_is_chosen(accept: str | None, encoding: str) -> None:
    assert choose_encoding(accept) == encoding


@pytest.mark.parametrize(("encoding", "unpack"), [(GZIP, gzip.decompress), (DEFLATE, zlib.decompress)])
def test_responses_are_packed(encoding: str, unpack: object) -> None:
    (body,), applied = compress([TEXT[:100], memoryview(TEXT)[100:]], encoding)
    assert callable(unpack)
    assert applied == encoding
    assert len(body) < len(TEXT) / 10
    assert unpack(body) == TEXT


def test_responses_that_would_not_get_smaller_are_left_alone() -> None:
    noise = np.random.default_rng(0).bytes(100_000)
    for body in (noise[:2000], noise, b"x" * (WORTH_BYTES - 1)):
        assert compress([body], GZIP) == ([body], IDENTITY)
    assert compress([TEXT], IDENTITY) == ([TEXT], IDENTITY)


def test_a_body_that_is_aborted_has_taken_no_more_memory_than_its_limit() -> None:
    bomb = zlib.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        check_refused(bomb, DEFLATE, 413, "body_too_large", replace(LIMITS, body_bytes=4 << 20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 << 20  # the limit, and what growing it takes
