import pytest

from service.codec import decode
from service.codec.decoded import Decoded
from service.codec.format import BINARY_SCHEMA, Format, JsonSchema, RequestBody
from service.codec.formats import FORMATS, find_format, media_types, parse_media_type, register_format, sniff
from service.config.limits import Limits
from tests.service.codec.payloads import LIMITS, RAW, VECTOR, refused


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("multipart/form-data", "form"),
        ("image/png", "image"),
        ("image/jpeg", "image"),
        ("image/webp", "image"),
        ("image/bmp", "image"),
        ("image/jpg", "image"),
        ("image/x-ms-bmp", "image"),
        ("application/json", "json"),
        ("text/json", "json"),
        ("application/x-npy", "npy"),
        ("application/x-npz", "npz"),
        ("application/zip", "npz"),
        ("text/csv", "csv"),
        ("application/csv", "csv"),
    ],
)
def test_header_decides(name: str, known: str) -> None:
    assert (
        find_format(parse_media_type(f"{name}; a=b"), b"\x93NUMPY" if known == "npz" else b"PK\x03\x04").name
        == known
    )


@pytest.mark.parametrize(
    ("body", "known"),
    [
        (b"\x89PNG\r\n\x1a\n", "image"),
        (b"\xff\xd8\xff\xe0", "image"),
        (b"RIFF\n\n\n\nWEBP", "image"),
        (b"BM\n\n\n\n\0\0\0\0", "image"),
        (b"\x93NUMPY", "npy"),
        (b"PK\x03\x04", "npz"),
        (b"PK\x05\x06", "npz"),
        (b" \n\t{", "json"),
        (b"\xef\xbb\xbf{", "json"),
        (b"RIFF\n\n\n\nWAVE", None),
        (b"BMW,2,3", None),
        (b"", None),
    ],
)
def test_first_bytes(body: bytes, known: str | None) -> None:
    assert sniff(body) is (None if known is None else FORMATS[known])


@pytest.mark.parametrize("content_type", [None, "", "application/x-www-form-urlencoded", "text/other", ";;;"])
def test_neither_decides(content_type: str | None) -> None:
    error = refused(
        lambda: decode(b"1,2,3", content_type, VECTOR, RAW, LIMITS), 415, "unsupported_media_type", "text/csv"
    )
    assert error.details["accepted"] == [
        "multipart/form-data",
        "image/png",
        "image/jpeg",
        "image/webp",
        "image/bmp",
        "application/json",
        "application/x-npy",
        "application/x-npz",
        "text/csv",
        "text/plain",
    ]
    assert media_types() == error.details["accepted"]


def test_body_is_empty_or_too_large() -> None:
    refused(lambda: decode(b"", "application/json", VECTOR, RAW, LIMITS), 400, "empty_body")
    limits = Limits(body_bytes=4)
    error = refused(
        lambda: decode(b"1,2,3", "text/csv", VECTOR, RAW, limits), 413, "body_too_large", "5 bytes"
    )
    assert error.details == {"limit": 4, "unit": "bytes"}


class _Text(Format):
    name = "other"
    media_types = ("text/x-other",)

    def decode(self, body: RequestBody) -> Decoded:
        return Decoded({})

    def schema(self) -> JsonSchema:
        return BINARY_SCHEMA


class _SecondCsv(_Text):
    name = "second csv"
    media_types = ("application/csv",)


class _SecondNpy(_Text):
    name = "npy"


def test_format_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.codec.formats.FORMATS", dict(FORMATS))
    added = register_format(_Text())
    assert find_format(parse_media_type("text/x-other"), b"\x93NUMPY") is added
    assert media_types()[-1] == "text/x-other"


@pytest.mark.parametrize(("added", "part"), [(_SecondCsv(), "application/csv"), (_SecondNpy(), "'npy'")])
def test_formats_do_not_share_names_or_media_types(added: Format, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        register_format(added)
