import pytest

from service.codec import decode
from service.codec.media_type import KINDS, Kind, find_kind, parse_media_type, sniff
from service.config.limits import Limits
from tests.service.codec.payloads import LIMITS, RAW, VECTOR, refused


def test_parameters() -> None:
    parsed = parse_media_type(' Text/CSV ; Charset="ut\\"f;8" ;header=present; odd')
    assert parsed.name == "text/csv"
    assert parsed.parameters == {"charset": 'ut"f;8', "header": "present"}
    assert parse_media_type(None).name == ""


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_header_decides(name: str, kind: Kind) -> None:
    assert find_kind(parse_media_type(f"{name}; a=b"), b"PK\x03\x04") is kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", Kind.IMAGE),
        (b"\xff\xd8\xff\xe0", Kind.IMAGE),
        (b"RIFF\n\n\n\nWEBP", Kind.IMAGE),
        (b"BM\n\n\n\n\0\0\0\0", Kind.IMAGE),
        (b"\x93NUMPY", Kind.NPY),
        (b"PK\x03\x04", Kind.NPZ),
        (b"PK\x05\x06", Kind.NPZ),
        (b" \n\t{", Kind.JSON),
        (b"\xef\xbb\xbf{", Kind.JSON),
        (b"RIFF\n\n\n\nWAVE", None),
        (b"BMW,2,3", None),
        (b"", None),
    ],
)
def test_first_bytes(body: bytes, kind: Kind | None) -> None:
    assert sniff(body) is kind


@pytest.mark.parametrize("content_type", [None, "", "application/x-www-form-urlencoded", "text/plain", ";;;"])
def test_neither_decides(content_type: str | None) -> None:
    error = refused(
        lambda: decode(b"1,2,3", content_type, VECTOR, RAW, LIMITS), 415, "unsupported_media_type", "text/csv"
    )
    assert error.details["accepted"] == list(KINDS)


def test_body_is_empty_or_too_large() -> None:
    refused(lambda: decode(b"", "application/json", VECTOR, RAW, LIMITS), 400, "empty_body")
    limits = Limits(body_bytes=4)
    error = refused(
        lambda: decode(b"1,2,3", "text/csv", VECTOR, RAW, limits), 413, "body_too_large", "5 bytes"
    )
    assert error.details == {"limit": 4, "unit": "bytes"}
