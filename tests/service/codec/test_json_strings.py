"""Long strings of large documents are read as the parser would read them, and without its long hold of the lock."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.codec import json_document
from service.codec.json_document import LARGE_BYTES, MAX_BYTES, parse_document
from service.codec.json_strings import SHORTEST, find_strings
from service.codec.number_text import PIECE_BYTES, NumberText
from service.errors import ServiceError

PLAIN = "iVBORw0KGgo+/=" * 400
LONG = "QUJD" * (LARGE_BYTES // 4)
FILL = " " * LARGE_BYTES


def found(text: bytes) -> list[bytes]:
    return [text[start:end] for start, end in find_strings(text, 0, len(text))]


def test_long_plain_strings_are_found_with_their_quotes() -> None:
    quoted = f'"{PLAIN}"'.encode()
    assert found(b'{"image":%b,"b":["x",%b]}' % (quoted, quoted)) == [quoted, quoted]
    assert found(b'"%b"' % (b"a" * SHORTEST)) == [b'"%b"' % (b"a" * SHORTEST)]
    assert found(b'"%b"' % (b"a" * (SHORTEST - 1))) == []


@pytest.mark.parametrize("size", [PIECE_BYTES - 2, PIECE_BYTES - 1, PIECE_BYTES, 3 * PIECE_BYTES])
def test_strings_across_pieces(size: int) -> None:
    quoted = b'"%b"' % (b"a" * size)
    for lead in (b"", b" ", b'{"a":', b" " * (PIECE_BYTES - 1)):
        assert found(lead + quoted) == [quoted]


@pytest.mark.parametrize(
    "text",
    [
        '"{}\\n"',
        '"\\u0041{}"',
        '"\\"{}"',
        '"é{}"',
        '"{}\x01"',
        '["a" {0}{0}, "b"]'.replace("{0}{0}", FILL),
        '{"a":' + "1" * 2000 + ',"b":2}',
        '["a",' + "1," * 2000 + '"b"]',
        '{"a":1}' + FILL + '"',
    ],
)
def test_what_is_no_plain_string_is_left_to_the_parser(text: str) -> None:
    assert found(text.replace("{}", PLAIN).encode()) == []


Strings = st.one_of(
    st.text(max_size=5),
    st.sampled_from(
        [PLAIN, PLAIN * 3, PLAIN + '"', PLAIN + "\\", "\\" + PLAIN, PLAIN + "é", ":" + PLAIN, " " * 3000]
    ),
)
Documents = st.recursive(
    st.one_of(Strings, st.integers(-9, 9), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(Strings, inner, max_size=4)),
    max_leaves=12,
)


@given(Documents, st.booleans())
@settings(max_examples=150, deadline=None)
def test_documents_are_read_as_the_parser_reads_them(document: Any, spaced: bool) -> None:
    text = orjson.dumps([LONG, document], option=orjson.OPT_INDENT_2 if spaced else None)
    assert parse_document(text) == orjson.loads(text)


def test_strings_and_arrays_stand_side_by_side() -> None:
    numbers = list(range(30_000))
    text = orjson.dumps(
        {"a": LONG, "inputs": [{"data": numbers, "id": LONG}, {"data": [LONG, PLAIN]}], LONG: 1}
    )
    read = parse_document(text)
    first, second = read["inputs"]
    assert (read["a"], first["id"], second["data"], read[LONG]) == (LONG, LONG, [LONG, PLAIN], 1)
    assert isinstance(first["data"], NumberText)
    assert parse_document(orjson.dumps(LONG)) == LONG


@pytest.mark.parametrize(
    "text", ['{"a":"%s","b":}', '["%s" "%s"]', '["x"%s"y"]', '{"a":"%s}', '["%s"x]', '[%s"]', '["%s\n"]']
)
def test_what_is_no_json_stays_none(text: str) -> None:
    wrong = text.replace("%s", LONG).encode()
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(wrong)
    with pytest.raises(orjson.JSONDecodeError) as caught:
        parse_document(wrong)
    assert 0 <= caught.value.pos <= len(wrong)


def test_the_parser_sees_no_more_than_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def loads(text: bytes) -> Any:
        seen.append(len(text))
        return orjson.loads(text)

    monkeypatch.setattr(json_document, "_parse", lambda text, _: loads(text))
    body = b'{"image":"%b"}' % (b"A" * (MAX_BYTES + 1))
    assert len(parse_document(body)["image"]) == MAX_BYTES + 1
    assert seen.pop() < 100
    for escaped in (b"\\u0041", b'\\"', "é".encode(), b" "):
        with pytest.raises(ServiceError) as caught:
            parse_document(b'{"image":"%b\\/"}' % (escaped * (MAX_BYTES // len(escaped) + 1)))
        assert (caught.value.status, caught.value.code) == (413, "too_many_values")
    assert not seen
