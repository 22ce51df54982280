import pytest

from service.codec.formats import parse_media_type


def test_parameters() -> None:
    parsed = parse_media_type(' Text/CSV ; Charset="ut\\"f;8" ;header=present; odd')
    assert parsed.name == "text/csv"
    assert parsed.parameters == {"charset": 'ut"f;8', "header": "present"}
    assert parse_media_type(None).name == ""


@pytest.mark.parametrize(
    ("header", "boundary"),
    [
        ("multipart/form-data; boundary=XX", "XX"),
        ("multipart/form-data;BOUNDARY=Xy", "Xy"),
        ('multipart/form-data; boundary="a b;c"', "a b;c"),
        ("multipart/form-data; boundary='abc'", "'abc'"),
        ("multipart/form-data; boundary=€", "?"),
        ("multipart/form-data; boundary=\xe4", "\xe4"),
        ("multipart/form-data; boundary", None),
        ("multipart/form-data; boundary=", None),
    ],
)
def test_boundary(header: str, boundary: str | None) -> None:
    parsed = parse_media_type(header)
    assert parsed.name == "multipart/form-data"
    assert parsed.parameters.get("boundary") == boundary
