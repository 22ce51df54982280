"""Finds the long strings of a JSON document that stand in it as they are: images in base64, above all.

A parser copies such a string twice, and checks it byte by byte, while it holds the interpreter's lock: a tenth of a
second for 60 MB. Here numpy, which releases the lock, looks for the quotes.
"""

from collections.abc import Iterator

import numpy as np

from service.codec.number_text import PIECE_BYTES, Bytes

SHORTEST = 1 << 10
"""Bytes of the shortest string that is found."""

_QUOTE, _BACKSLASH, _SPACE, _LAST_ASCII = 0x22, 0x5C, 0x20, 0x7E
_AFTER_A_STRING = b" \t\r\n,:]}"
"""What may follow the quote that ends a string. What begins otherwise is in a string, or the document is no JSON."""


def find_strings(text: Bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield where long strings begin and end, with their quotes, that hold printable ASCII and no escapes.

    Of a text that is no JSON, what is yielded may be no string: with a string in its place, the text still is no JSON.

    Args:
        text: the document.
        start: where to begin, outside of strings.
        stop: where to end, outside of strings.
    """
    opened = -1
    for begin in range(start, stop, PIECE_BYTES):
        piece = np.frombuffer(text, np.uint8, min(PIECE_BYTES, stop - begin), begin)
        quotes = np.flatnonzero(piece == _QUOTE) + begin
        if not quotes.size:
            continue
        before = np.concatenate(([opened], quotes[:-1]))
        for place in np.flatnonzero((quotes - before > SHORTEST) & (before >= 0)).tolist():
            first, last = int(before[place]), int(quotes[place])
            if _begins_a_string(text, first) and _is_plain(text, first + 1, last):
                yield first, last + 1
        opened = int(quotes[-1])


def _begins_a_string(text: Bytes, quote: int) -> bool:
    is_escaped = quote > 0 and text[quote - 1] == _BACKSLASH
    return not is_escaped and text[quote + 1] not in _AFTER_A_STRING


def _is_plain(text: Bytes, start: int, stop: int) -> bool:
    for begin in range(start, stop, PIECE_BYTES):
        piece = np.frombuffer(text, np.uint8, min(PIECE_BYTES, stop - begin), begin)
        if ((piece < _SPACE) | (piece > _LAST_ASCII) | (piece == _BACKSLASH)).any():
            return False
    return True
