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
    name = charset or "utf-8"
    codec = _CHARSETS.get(name.lower())
    if codec is None:
        message = f"charset {name[:40]!r} is not taken; send UTF-8"
        raise ServiceError(415, "unsupported_charset", message, {"accepted": list(_CHARSETS)})
    try:
        return body.decode(codec)
    except UnicodeDecodeError as error:
        message = f"byte {error.start} of the body is not {name}: {error.reason}"
        raise ServiceError(400, code, message, {"byte": error.start}) from error
