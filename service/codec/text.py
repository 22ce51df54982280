"""Decodes bodies of text."""

from service.errors import ServiceError

_CHARSETS = {
    "utf-8": "utf-8-sig",
    "utf8": "utf-8-sig",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
    "latin-1": "latin-1",
    "latin1": "latin-1",
    "windows-1252": "cp1252",
    "utf-16": "utf-16",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
}
"""Python's codec of each charset that HTTP names; UTF-8 may begin with a byte order mark."""


def decode_text(body: bytes, charset: str | None, code: str) -> str:
    """Decode a body.

    Args:
        body: the bytes.
        charset: parameter of the `Content-Type`; UTF-8 where there is none.
        code: error code for bytes that are not of that charset.

    Raises:
        ServiceError: 400 `code`, or 415 `unsupported_charset`.
    """
    try:
        return body.decode(codec_of(charset))
    except UnicodeDecodeError as error:
        raise not_of_charset(charset, error.start, error.reason, code) from error


def codec_of(charset: str | None) -> str:
    """Return Python's codec of a charset; UTF-8 where there is none.

    Raises:
        ServiceError: 415 `unsupported_charset`.
    """
    name = charset or "utf-8"
    codec = _CHARSETS.get(name.lower())
    if codec is None:
        message = f"charset {name[:40]!r} is not supported; use UTF-8"
        raise ServiceError(415, "unsupported_charset", message, {"accepted": list(_CHARSETS)})
    return codec


def not_of_charset(charset: str | None, position: int, reason: str, code: str) -> ServiceError:
    """Return the error for bytes that are not of their charset.

    Args:
        charset: the charset; UTF-8 where it is None.
        position: the first such byte.
        reason: what is wrong with it.
        code: the error's code.
    """
    message = f"byte {position} of the body is not {charset or 'utf-8'}: {reason}"
    return ServiceError(400, code, message, {"byte": position})
