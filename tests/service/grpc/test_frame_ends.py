"""A frame of our own between those of HTTP/2: wherever the bytes are cut, it comes where one may be."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from service.grpc.frame_ends import GOAWAY, FrameEnds

_DATA, _HEADERS, _SETTINGS, _CONTINUATION = 0, 1, 4, 9
_END_HEADERS = 4


def frame(kind: int, flags: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", 1) + payload


_payloads = st.binary(max_size=40)
_plain = st.builds(lambda kind, payload: [frame(kind, 0, payload)], st.sampled_from([0, 4, 6, 8]), _payloads)
_blocks = st.builds(
    lambda first, more, last: [
        frame(_HEADERS, 0, first),
        *(frame(_CONTINUATION, 0, part) for part in more),
        frame(_CONTINUATION, _END_HEADERS, last),
    ],
    _payloads,
    st.lists(_payloads, max_size=3),
    _payloads,
)
_headers = st.builds(lambda payload: [frame(_HEADERS, _END_HEADERS | 1, payload)], _payloads)
_groups = st.lists(st.one_of(_plain, _blocks, _headers), max_size=8)
"""Frames that nothing may come between."""


@given(groups=_groups, cuts=st.lists(st.integers(1, 30), max_size=60), wanted=st.integers(0, 400))
def test_it_is_put_where_a_frame_may_be(groups: list[list[bytes]], cuts: list[int], wanted: int) -> None:
    groups = [[frame(_SETTINGS, 0, b"")], *groups]
    whole = b"".join(part for group in groups for part in group)
    places, position = set(), 0
    for group in groups:
        position += sum(map(len, group))
        places.add(position)
    ends, sent, start = FrameEnds(), 0, 0
    for size in [*cuts, len(whole)]:
        piece = whole[start : start + size]
        start += size
        found = ends.advance(piece)
        if found >= 0:
            assert sent + found in places
        sent += len(piece)
        assert ends.is_between == (sent in places)
        assert not ends.is_between or found == len(piece) or not piece
    assert sent == len(whole)
    assert ends.is_between


def test_it_says_that_the_server_leaves() -> None:
    length, kind, flags = int.from_bytes(GOAWAY[:3], "big"), GOAWAY[3], GOAWAY[4]
    stream, last, code = struct.unpack(">III", GOAWAY[5:])
    assert (length, kind, flags, stream, last, code) == (len(GOAWAY) - 9, 7, 0, 0, 2**31 - 1, 0)
