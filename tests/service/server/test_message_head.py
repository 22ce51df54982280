"""What RFC 9112 has a server refuse in the head of a request."""

import pytest

from service.errors import ServiceError
from service.server.message_head import authority_of, check_head

HOST = (b"host", b"localhost:8000")
CHUNKED = (b"transfer-encoding", b"Chunked")


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.1", [HOST]),
        ("1.0", []),
        ("1.0", [HOST, CHUNKED]),
        ("1.1", [(b"host", b"")]),
        ("1.1", [(b"host", b"[::1]:80")]),
        ("1.1", [HOST, CHUNKED]),
        ("1.1", [(b"accept", b"*/*"), HOST]),
    ],
)
def test_what_the_rfc_allows(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    check_head(version, headers)


@pytest.mark.parametrize(
    ("version", "headers", "problem"),
    [
        ("1.1", [], "0 Host headers; expected exactly one"),
        ("1.1", [HOST, HOST], "2 Host headers"),
        ("1.0", [HOST, HOST], "2 Host headers"),
        ("1.1", [(b"host", b"a b")], "Host header is malformed"),
        ("1.1", [(b"host", b"user@a")], "Host header is malformed"),
        ("1.1", [(b"host", b"a/b")], "Host header is malformed"),
        ("0.9", [HOST], "HTTP version is 0.9; expected 1.1 or 1.0"),
        ("2.0", [HOST], "HTTP version is 2.0"),
        ("1.1", [HOST, (b"transfer-encoding", b"gzip, chunked")], "transfer coding is unsupported"),
        ("1.1", [HOST, (b"transfer-encoding", b"gzip"), CHUNKED], "transfer coding is unsupported"),
        ("1.1", [HOST, (b"transfer-encoding", b"identity")], "transfer coding is unsupported"),
        ("1.1", [HOST, CHUNKED, CHUNKED], "transfer coding is unsupported"),
    ],
)
def test_what_the_rfc_has_refused(version: str, headers: list[tuple[bytes, bytes]], problem: str) -> None:
    with pytest.raises(ServiceError, match=problem) as refused:
        check_head(version, headers)
    assert (refused.value.status, refused.value.code) == (400, "invalid_http")


@pytest.mark.parametrize(
    ("target", "authority"),
    [
        (b"*", None),
        (b"http://evil.example/livez", b"evil.example"),
        (b"HTTP://[::1]:8000?q", b"[::1]:8000"),
    ],
)
def test_authority_of_a_target(target: bytes, authority: bytes | None) -> None:
    assert authority_of(target) == authority


@pytest.mark.parametrize("target", [b"http:///x", b"a:80", b"http://user@a/", b"x"])
def test_targets_without_a_valid_host(target: bytes) -> None:
    with pytest.raises(ServiceError, match="request target is malformed"):
        authority_of(target)
