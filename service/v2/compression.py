"""Content codings: gzip and deflate, both ways.

"deflate" is the zlib format (RFC 9110, section 8.4.1.2). Bodies may also be the raw stream, which some clients send
under that name.
"""

import re
import zlib
from collections.abc import Sequence

from service.codec.inflation import check_memory
from service.codec.response import BytesLike
from service.config.limits import Limits
from service.decoding import leave_large
from service.errors import ServiceError

IDENTITY, GZIP, DEFLATE = "identity", "gzip", "deflate"

LARGE_BYTES = 2 << 20
"""Maximum bytes of a response that are compressed where they are."""
WORTH_BYTES = 1024
"""Responses with fewer bytes are not compressed."""
_STEP = 1 << 16
_SAMPLE = 1 << 14
_WORTH_RATIO = 0.9
_LEVEL = 1
"""Higher levels take longer without making tensors much smaller."""

_GZIP_BITS, _ZLIB_BITS, _BARE_BITS = 31, 15, -15
_BITS = {GZIP: _GZIP_BITS, DEFLATE: _ZLIB_BITS}
_QUALITY = re.compile(r"\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*", re.IGNORECASE)


def parse_encoding(header: str | None) -> str:
    """Return the coding of a body.

    Raises:
        ServiceError: 501 `unsupported_encoding`.
    """
    if header is None:
        return IDENTITY
    name = header.strip().lower()
    if name in ("", IDENTITY):
        return IDENTITY
    if name in ("x-gzip", GZIP):
        return GZIP
    if name == DEFLATE:
        return DEFLATE
    message = f"Content-Encoding {name[:40]!r} is not supported; expected gzip, deflate or identity"
    accepted = [GZIP, DEFLATE, IDENTITY]
    raise ServiceError(
        501, "unsupported_encoding", message, {"accepted": accepted}, {"Accept-Encoding": "gzip, deflate"}
    )


def decompress(body: bytes | bytearray, encoding: str, limits: Limits) -> bytes | bytearray:
    """Decompress a body.

    It is decompressed step by step, and abandoned as soon as the result is larger than a body may be. Other threads run
    during each step.

    Raises:
        ServiceError: 400 `invalid_encoding`, 413 `body_too_large`.
    """
    if encoding == IDENTITY:
        return body
    try:
        return _inflate(body, _bits(body, encoding), limits)
    except zlib.error as error:
        check_memory(error)
        raise _invalid(encoding, str(error)) from error


def choose_encoding(accept: str | None) -> str:
    """Choose the coding of a response by `Accept-Encoding`: gzip, deflate, or identity if it accepts neither."""
    if not accept:
        return IDENTITY
    qualities = dict(_parse_coding(item) for item in accept.lower().split(","))
    others = qualities.get("*", 0.0)
    best = max((GZIP, DEFLATE), key=lambda coding: qualities.get(coding, others))
    quality = qualities.get(best, others)
    return best if quality > 0 and quality >= qualities.get(IDENTITY, 0.0) else IDENTITY


def compress(pieces: Sequence[BytesLike], encoding: str) -> tuple[Sequence[BytesLike], str]:
    """Compress a response if that makes it smaller by at least a tenth.

    Args:
        pieces: the response's body; they are never joined.
        encoding: the coding.

    Returns:
        The pieces to send, and their coding.

    Raises:
        NeedsDecoderError: the response is large, and this thread leaves that to others.
    """
    length = sum(map(len, pieces))
    if encoding == IDENTITY or length < WORTH_BYTES:
        return pieces, IDENTITY
    if length > 2 * _SAMPLE:
        sample = _first_bytes(pieces)
        if len(zlib.compress(sample, _LEVEL)) > _WORTH_RATIO * len(sample):
            return pieces, IDENTITY
    leave_large(length, LARGE_BYTES)
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _BITS[encoding])
    packed = [packer.compress(piece) for piece in pieces]
    packed.append(packer.flush())
    is_worth = sum(map(len, packed)) <= _WORTH_RATIO * length
    return ([b"".join(packed)], encoding) if is_worth else (pieces, IDENTITY)


def _first_bytes(pieces: Sequence[BytesLike]) -> bytes:
    sample = b""
    for piece in pieces:
        sample += memoryview(piece)[: _SAMPLE - len(sample)]
        if len(sample) == _SAMPLE:
            break
    return sample


def _bits(body: bytes | bytearray, encoding: str) -> int:
    """Return zlib's window bits for a body: a zlib header is two bytes, a multiple of 31, method 8 (RFC 1950)."""
    if encoding == DEFLATE and len(body) >= 2:
        has_header = body[0] & 0x0F == zlib.DEFLATED and (body[0] << 8 | body[1]) % 31 == 0
        return _ZLIB_BITS if has_header else _BARE_BITS
    return _BITS[encoding]


def _inflate(body: bytes | bytearray, bits: int, limits: Limits) -> bytearray:
    """Decompress a body in steps of bounded input and output: zlib copies the rest of its input at each step."""
    unpacker = zlib.decompressobj(bits)
    result = bytearray()  # to join chunks at the end would take twice the memory, and hold the GIL
    for start in range(0, len(body), _STEP):
        rest: bytes | memoryview = memoryview(body)[start : start + _STEP]
        while not unpacker.eof:
            chunk = unpacker.decompress(rest, _STEP)
            rest = unpacker.unconsumed_tail
            limits.check_body(len(result) + len(chunk))
            result += chunk
            if not rest and len(chunk) < _STEP:
                break
        if unpacker.eof and (unpacker.unused_data or start + _STEP < len(body)):
            raise zlib.error("more bytes follow its end")
    if not unpacker.eof:
        raise zlib.error("it ends too early")
    return result


def _parse_coding(item: str) -> tuple[str, float]:
    name, *parameters = item.split(";")
    matches = (_QUALITY.fullmatch(parameter) for parameter in parameters)
    return name.strip(), next((float(match[1]) for match in matches if match), 1.0)


def _invalid(encoding: str, problem: str) -> ServiceError:
    return ServiceError(400, "invalid_encoding", f"the body is not {encoding}: {problem}")
