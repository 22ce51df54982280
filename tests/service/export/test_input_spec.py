"""How shapes of inputs are spelled."""

import pytest

from service.export import ExportError, InputSpec, parse_input


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("1,3,224,224", InputSpec((1, 3, 224, 224), (False,) * 4)),
        ("?,3,?,?", InputSpec((1, 3, 224, 224), (True, False, True, True))),
        ("?,3,640?,320?", InputSpec((1, 3, 640, 320), (True, False, True, True))),
        ("1, 128:i64", InputSpec((1, 128), (False, False), "i64")),
        ("?,?:i64", InputSpec((1, 16), (True, True), "i64")),
        ("", InputSpec((), ())),
    ],
)
def test_shapes_are_read(text: str, spec: InputSpec) -> None:
    assert parse_input(text) == spec


@pytest.mark.parametrize("text", ["1,0,3", "1,-1", "1,,3", "a", "1;3", "?3", "1.5"])
def test_what_is_no_shape_is_told(text: str) -> None:
    with pytest.raises(ExportError, match="is no size; expected sizes with commas between"):
        parse_input(text)


def test_an_unknown_type_is_told() -> None:
    with pytest.raises(ExportError, match="there is no type 'float'; expected one of f32"):
        parse_input("1,3:float")


def test_a_spec_is_shown_with_its_open_sizes() -> None:
    assert str(parse_input("?,3,8,640?:u8")) == "(?,3,8,?)u8"
