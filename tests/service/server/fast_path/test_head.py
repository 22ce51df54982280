"""Which heads are plain."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.server.fast_path.head import read_head

LONGEST = 1000
LENGTH = (b"content-length", b"5")

names = st.sampled_from(
    [b"content-length", b"content-type", b"connection", b"expect", b"trailer", b"transfer-encoding", b"x"]
)
values = st.one_of(
    st.sampled_from([b"", b"5", b"1000", b"1001", b"-1", b"+5", b"5 ", b"5_0", b"close", b"Keep-Alive"]),
    st.binary(max_size=30),
)


def is_plain(url: bytes = b"/infer", *fields: tuple[bytes, bytes]) -> bool:
    return read_head(url, fields or (LENGTH,), LONGEST) is not None


def test_plain_head_is_read() -> None:
    fields = [
        (b"host", b"test"),
        (b"content-type", b"text/x; a=\xe9"),
        LENGTH,
        (b"connection", b"Keep-Alive"),
    ]
    head = read_head(b"/v2/models/m/infer?a=%20&b=?", fields, LONGEST)
    assert head is not None
    assert (head.path, head.query, head.length) == ("/v2/models/m/infer", "a=%20&b=?", 5)
    assert head.headers["content-type"] == "text/x; a=\xe9"
    assert head.headers.get("accept") is None


@pytest.mark.parametrize(
    "url", [b"/%69nfer", b"http://test/infer", b"*", b"", b"infer", b"/infer?a#b", b"/infer#b"]
)
def test_path_that_has_to_be_worked_out_is_not_plain(url: bytes) -> None:
    assert not is_plain(url)


def test_query_may_have_escapes() -> None:
    assert is_plain(b"/infer?model=a%2Fb")


@pytest.mark.parametrize(
    "name", [b"transfer-encoding", b"content-encoding", b"expect", b"upgrade", b"trailer"]
)
def test_header_that_changes_what_a_body_is_makes_it_not_plain(name: bytes) -> None:
    assert not is_plain(b"/infer", LENGTH, (name, b"identity"))


@pytest.mark.parametrize("name", [b"x", b"content-length", b"x-request-id", b"authorization"])
def test_header_that_comes_twice_makes_it_not_plain(name: bytes) -> None:
    rest = () if name == b"content-length" else (LENGTH,)
    assert is_plain(b"/infer", *rest, (name, b"5"))
    assert not is_plain(b"/infer", *rest, (name, b"5"), (name, b"5"))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (b"close", True),
        (b"Close", True),
        (b"keep-alive", True),
        (b"", False),
        (b"upgrade", False),
        (b"keep-alive, upgrade", False),
        (b"close, x", False),
    ],
)
def test_connection_is_kept_or_closed_and_nothing_else(value: bytes, plain: bool) -> None:
    assert is_plain(b"/infer", LENGTH, (b"connection", value)) == plain


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (b"0", True),
        (b"1000", True),
        (b"1001", False),
        (b"0000000000000000005", True),
        (b"00000000000000000005", False),
        (b"9" * 5000, False),
        (b"", False),
        (b"-1", False),
        (b"+1", False),
        (b"1_0", False),
        (b" 1", False),
        (b"0x1", False),
        (b"\xb2", False),
        ("٣".encode(), False),
    ],
)
def test_length_is_a_number_that_is_not_too_large(value: bytes, plain: bool) -> None:
    assert is_plain(b"/infer", (b"content-length", value)) == plain


def test_length_has_to_be_known() -> None:
    assert not is_plain(b"/infer", (b"host", b"test"))


@given(st.binary(max_size=30).map(lambda rest: b"/" + rest), st.lists(st.tuples(names, values), max_size=5))
@example(b"/infer", [LENGTH, (b"content-length", b"6")])
@example(b"/infer", [(b"content-length", b"9" * 19)])
def test_no_head_makes_it_fail_or_is_taken_for_more_than_it_says(
    url: bytes, fields: list[tuple[bytes, bytes]]
) -> None:
    head = read_head(url, fields, LONGEST)
    if head is None:
        return
    known = dict(fields)
    assert len(known) == len(fields) == len(head.headers)
    assert known[b"content-length"].isdigit()
    assert int(known[b"content-length"]) == head.length <= LONGEST
    assert not {b"expect", b"trailer", b"transfer-encoding"} & known.keys()
    assert "%" not in head.path
    assert f"{head.path}?{head.query}".encode("latin-1") in (url, url + b"?")


@given(st.integers(0, LONGEST), st.lists(values, max_size=3))
def test_heads_of_a_good_length_are_taken_whatever_else_they_say(length: int, others: list[bytes]) -> None:
    fields = [(b"content-length", b"%d" % length)]
    fields += [(b"x-%d" % index, value) for index, value in enumerate(others)]
    head = read_head(b"/infer", fields, LONGEST)
    assert head is not None
    assert head.length == length
