"""How shapes of inputs are spelled."""

import pytest

from service.export import ExportError, InputSpec, parse_input
from service.export.input_spec import less_dynamic
from service.export.source import named_specs


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("1,3,224,224", InputSpec((1, 3, 224, 224), (False,) * 4, "")),
        ("?,3,?,?", InputSpec((1, 3, 224, 224), (True, False, True, True), "")),
        ("?,3,640?,320?", InputSpec((1, 3, 640, 320), (True, False, True, True), "")),
        ("1, 128:i64", InputSpec((1, 128), (False, False), "i64")),
        ("?,?:i64", InputSpec((1, 16), (True, True), "i64")),
        ("", InputSpec((), (), "")),
    ],
)
def test_shapes_are_read(text: str, spec: InputSpec) -> None:
    assert parse_input(text) == spec


@pytest.mark.parametrize("text", ["1,0,3", "1,-1", "1,,3", "a", "1;3", "?3", "1.5"])
def test_what_is_no_shape_is_reported(text: str) -> None:
    with pytest.raises(ExportError, match="is not a size; expected sizes with commas between"):
        parse_input(text)


def test_an_unknown_type_is_reported() -> None:
    with pytest.raises(ExportError, match="there is no type 'float'; expected one of f32"):
        parse_input("1,3:float")


def test_a_spec_is_shown_with_its_dynamic_sizes() -> None:
    assert str(parse_input("?,3,8,640?:u8")) == "(?,3,8,?)u8"
    assert str(parse_input("1,3")) == "(1,3)f32"
    assert parse_input("1,3").numpy_dtype == "f4"


def test_a_type_that_is_not_given_is_the_source_s_or_follows_from_the_name() -> None:
    given = [parse_input("1,3")] * 4
    declared = [InputSpec((), (), dtype, name) for dtype, name in (("u8", "a"), ("", "a"))]
    declared += [InputSpec((), (), "", name) for name in ("input_ids", "mask")]
    found = named_specs(given, declared, "net")
    assert [(spec.dtype, spec.name) for spec in found] == [
        ("u8", "a"),
        ("f32", "a"),
        ("i64", "input_ids"),
        ("f32", "mask"),
    ]
    assert named_specs([parse_input("1,3:i32")], declared[2:3], "net")[0].dtype == "i32"
    with pytest.raises(ExportError, match="input 'a' is of u8, and --input says f32; give :u8, or no type"):
        named_specs([parse_input("1,3:f32")], declared[:1], "net")
    with pytest.raises(ExportError, match=r"has 1 input \(a\), and there are 2 shapes"):
        named_specs(given[:2], declared[:1], "net")


def test_dynamic_dimensions_are_aborted_in_steps() -> None:
    specs = [parse_input("?,3,8?"), parse_input("?,4")]
    shown = [[str(spec) for spec in each] for each in less_dynamic(specs, None)]
    assert shown == [["(?,3,?)f32", "(?,4)f32"], ["(?,3,8)f32", "(?,4)f32"], ["(1,3,8)f32", "(1,4)f32"]]
    assert len(list(less_dynamic([parse_input("?,4")], None))) == 2
    assert len(list(less_dynamic([parse_input("1,4")], None))) == 1


@pytest.mark.parametrize(("most", "length"), [(40, 40), (512, 128)])
def test_a_length_of_texts_that_becomes_fixed_is_a_useful_one(most: int, length: int) -> None:
    tried = [each[0] for each in less_dynamic([parse_input("?,16?:i64")], most)]
    assert [spec.shape for spec in tried] == [(1, 16), (1, length), (1, length)]
    assert [spec.is_dynamic for spec in tried] == [(True, True), (True, False), (False, False)]
