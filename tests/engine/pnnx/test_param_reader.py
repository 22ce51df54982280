from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import ParamError
from engine.pnnx import TensorType
from engine.pnnx.param_reader import MAX_FILE_BYTES, MAX_LINE_BYTES, ParamText, read_param

Reader = Callable[[str | bytes], ParamText]


@pytest.fixture
def parse(tmp_path: Path) -> Reader:
    def run(text: str | bytes) -> ParamText:
        path = tmp_path / "model.param"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_param(path)

    return run


def test_an_operator_line_is_read_into_its_parts(parse: Reader) -> None:
    text = parse(
        "7767517\n3 4\n"
        "pnnx.Input in 0 2 a b #a=(1,?)f32 #b=(1)i64\n"
        "my.Op op 3 2 a a b c d x=1 y=(1.5,2.0) @w=(2,4)f32 @m.0.bias=()null $first=a $again=a $last=b #c=(%n)f16\n"
        "pnnx.Output out 2 0 c d\n"
    )
    operator = text.graph.operators[1]
    assert (operator.type, operator.name) == ("my.Op", "op")
    assert operator.inputs == ["a", "a", "b"]
    assert operator.outputs == ["c", "d"]
    assert operator.params == {"x": 1, "y": (1.5, 2.0)}
    assert operator.input_names == {"first": "a", "again": "a", "last": "b"}
    assert text.graph.operands == {
        "a": TensorType((1, None), "f32"),
        "b": TensorType((1,), "i64"),
        "c": TensorType((None,), "f16", ((0, "n"),)),
        "d": None,
    }
    assert list(text.graph.operands) == ["a", "b", "c", "d"]
    declared = [(found.entry, found.shape, found.dtype, found.line) for found in text.declarations]
    assert declared == [("op.w", (2, 4), "f32", 4), ("op.m.0.bias", (), "null", 4)]
    assert all(found.operator is operator for found in text.declarations)


def test_an_operator_may_read_what_a_later_line_produces(parse: Reader) -> None:
    text = parse("7767517\n2 2\nt second 1 1 1 2\nt first 1 1 2 1\n")
    assert list(text.graph.operands) == ["1", "2"]


def test_odd_spacing_and_comments_are_tolerated(parse: Reader) -> None:
    text = parse(
        "\ufeff# made by hand\r\n\r\n"
        "  7767517\tthe magic number\r\n"
        "\t2 1 operators and operands\r\n"
        "# two operators\n"
        "pnnx.Input \t\v\f in 0   1 0  mode=a  # a comment with x=1 and @y=(1)f32\r\n"
        "\n"
        "pnnx.Output out 1 0 0 #0=(1)f32 #comment x=2   \n"
        "   # the end\n"
        "\n"
    )
    first, second = text.graph.operators
    assert first.params == {"mode": "a"}
    assert second.params == {}
    assert text.graph.operands == {"0": TensorType((1,), "f32")}
    assert text.declarations == []


def test_no_line_break_is_needed_at_the_end(parse: Reader) -> None:
    assert parse("7767517\n1 0\nt n 0 0 x=1").graph.operators[0].params == {"x": 1}


def test_no_operators_are_a_graph_too(parse: Reader) -> None:
    assert parse("7767517\n0 0\n").graph.operators == []


def test_white_space_outside_ascii_is_part_of_a_word(parse: Reader) -> None:
    text = parse("7767517\n1 1\nt näme\u00a0x 0 1 \u3000 x=a\u2003b\x1c\n")
    operator = text.graph.operators[0]
    assert (operator.name, operator.outputs, operator.params) == (
        "näme\u00a0x",
        ["\u3000"],
        {"x": "a\u2003b\x1c"},
    )


def test_unknown_keys_and_words_are_kept(parse: Reader) -> None:
    operator = parse("7767517\n1 0\nt n 0 0 word !new=1 %x=(1,2) a=b=c =5 &flag\n").graph.operators[0]
    assert operator.params == {"word": "", "!new": 1, "%x": (1, 2), "a": "b=c", "": 5, "&flag": ""}


def test_operand_and_attribute_names_may_have_an_equals_sign(parse: Reader) -> None:
    text = parse("7767517\n2 1\nt n 0 1 a=b #a=b=(1)f32 @k=v=(1)i8\nt m 1 0 a=b $x=a=b\n")
    assert text.graph.operands == {"a=b": TensorType((1,), "f32")}
    assert text.declarations[0].key == "k=v"
    assert text.graph.operators[1].input_names == {"x": "a=b"}


def test_the_last_of_two_operand_types_counts(parse: Reader) -> None:
    text = parse("7767517\n2 1\nt n 0 1 a #a=(1)f32\nt m 1 0 a #a=(2)f32\n")
    assert text.graph.operands == {"a": TensorType((2,), "f32")}


def test_only_spellings_that_cannot_be_worked_out_are_kept(parse: Reader) -> None:
    operator = parse(
        "7767517\n1 0\nt n 0 0 a=1 b=1.0 c=1.000000e-05 d=[1,2] e=() f=x g=(1,2)\n"
    ).graph.operators[0]
    assert operator.spellings == {"c": "1.000000e-05", "d": "[1,2]", "e": "()"}


def test_a_stray_operand_is_distinguished_from_a_stray_word(parse: Reader) -> None:
    with pytest.raises(ParamError, match="line 3: operand 'b' after the last output"):
        parse("7767517\n2 2\nt n 0 1 a b\nt m 1 1 a b\n")


def test_huge_and_tiny_numbers_in_the_header_allocate_nothing(parse: Reader) -> None:
    with pytest.raises(ParamError, match="expected 999999999999999999, as this line says"):
        parse(f"7767517\n{10**18 - 1} {10**18 - 1}\n")


def test_operands_that_folding_left_over_may_be_counted(parse: Reader) -> None:
    lines = "pnnx.Attribute pnnx_fold_7 0 1 a\npnnx.Output out 1 0 a\n"
    assert parse(f"7767517\n2 3\n{lines}").graph.operands.keys() == {"a"}
    with pytest.raises(ParamError, match="line 2: 1 operands in the file; expected 0"):
        parse(f"7767517\n2 0\n{lines}")


def test_a_line_may_not_be_longer_than_the_limit(parse: Reader) -> None:
    with pytest.raises(ParamError, match="line 3: a line of .* bytes; expected at most"):
        parse(b"7767517\n1 0\nt n 0 0 x=" + b"y" * MAX_LINE_BYTES)


def test_a_long_line_below_the_limit_is_read(parse: Reader) -> None:
    operands = " ".join(map(str, range(50_000)))
    types = " ".join(f"#{index}=(1)f32" for index in range(50_000))
    text = parse(f"7767517\n1 50000\nt n 0 50000 {operands} {types}\n")
    assert len(text.graph.operands) == 50_000


def test_a_file_may_not_be_longer_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "huge.param"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(ParamError, match="33554433 bytes; expected at most 33554432"):
        read_param(path)


def test_a_missing_file_a_folder_and_an_impossible_path_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ParamError, match="none.param: cannot be read: No such file"):
        read_param(tmp_path / "none.param")
    with pytest.raises(ParamError, match="is a folder; expected a .param text"):
        read_param(tmp_path)
    with pytest.raises(ParamError, match="cannot be read: embedded null"):
        read_param(tmp_path / "a\0b")
