"""Forms that are parsed in pieces are what they are in one."""

import pytest

from service.codec import multipart
from service.codec.multipart import parse_multipart

DATA = b"\r\n--boun\r\n--bound\r-\r\n\r\n--" * 3 + bytes(range(256))
FORM = (
    b'--boundary\r\nContent-Disposition: form-data; name="first"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
    b'%b\r\n--boundary\r\nContent-Disposition: form-data; name="second"\r\n\r\nyes\r\n--boundary--\r\nafterwards'
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 64, 100, 1 << 20])
def test_pieces_of_any_size_give_the_same_parts(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(multipart, "_PIECE_BYTES", size)
    first, second = parse_multipart(FORM % DATA, "boundary")
    assert (first.name, first.is_file, first.data) == ("first", True, DATA)
    assert (second.name, second.is_file, second.data) == ("second", False, b"yes")
