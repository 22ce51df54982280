"""Whatever is done to a sound pair of files, reading gives a graph or a PnnxError."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import PnnxError
from engine.pnnx import read, write
from tests.engine.pnnx.zip_builder import Member, build, build_zip64, zip64_member
from tests.malformed.make import BIAS, VALID, WEIGHT

PARAM = VALID.encode()
CLASSIC = build([Member("fc.bias", BIAS), Member("fc.weight", WEIGHT)])
ZIP64 = build_zip64(
    [zip64_member("fc.bias", BIAS, 0), zip64_member("fc.weight", WEIGHT, 30 + 7 + 28 + len(BIAS))]
)
TOKENS = [
    b"0",
    b"1",
    b"2",
    b"-1",
    b"999999999999999999",
    b"?",
    b"%n",
    b"(1,2)f32",
    b"=",
    b"@",
    b"#",
    b"$",
    b"\n",
    b" ",
]

edits = st.lists(
    st.tuples(
        st.sampled_from(["set", "insert", "delete", "cut", "repeat"]),
        st.integers(0, 2**16),
        st.integers(1, 30),
        st.binary(min_size=1, max_size=8)
        | st.sampled_from(TOKENS)
        | st.just(b"\xff" * 8)
        | st.just(bytes(8)),
    ),
    min_size=1,
    max_size=4,
)


def apply(content: bytes, changes: list[tuple[str, int, int, bytes]]) -> bytes:
    for kind, place, length, data in changes:
        at = place % (len(content) + 1)
        before, after = content[:at], content[at:]
        content = {
            "set": before + data + after[len(data) :],
            "insert": before + data + after,
            "delete": before + after[length:],
            "cut": before,
            "repeat": before + after[:length] + after,
        }[kind]
    return content


def check(param: bytes, archive: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "m.param"), Path(folder, "m.bin")
        paths[0].write_bytes(param)
        paths[1].write_bytes(archive)
        try:
            graph = read(*paths)
        except PnnxError:
            return
        write(graph, *paths)
        assert read(*paths) == graph


@given(edits)
@settings(max_examples=150)
def test_a_changed_param_gives_a_graph_or_an_error(changes: list[tuple[str, int, int, bytes]]) -> None:
    check(apply(PARAM, changes), CLASSIC)


@given(edits)
@settings(max_examples=150)
def test_a_changed_classic_archive_gives_a_graph_or_an_error(
    changes: list[tuple[str, int, int, bytes]],
) -> None:
    check(PARAM, apply(CLASSIC, changes))


@given(edits)
@settings(max_examples=150)
def test_a_changed_zip64_archive_gives_a_graph_or_an_error(
    changes: list[tuple[str, int, int, bytes]],
) -> None:
    check(PARAM, apply(ZIP64, changes))


@given(st.binary(max_size=200), st.binary(max_size=200))
@settings(max_examples=100)
def test_any_bytes_give_a_graph_or_an_error(param: bytes, archive: bytes) -> None:
    check(param, archive)
    check(PARAM, archive)
    check(param, CLASSIC)


def test_the_models_they_start_from_are_sound() -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "m.param"), Path(folder, "m.bin")
        paths[0].write_bytes(PARAM)
        for archive in (CLASSIC, ZIP64):
            paths[1].write_bytes(archive)
            assert len(read(*paths).operators) == 4
