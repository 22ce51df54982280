import pytest

from engine.errors import ExpressionError
from engine.expression.lexer import MAX_LENGTH, tokenize
from engine.expression.tokens import TokenKind


def kinds(source: str) -> list[str]:
    return [token.kind.name for token in tokenize(source)]


def test_tokens_carry_kind_text_and_position() -> None:
    tokens = list(tokenize("add(@0, 1.5)"))
    assert [(token.kind.name, token.text, token.position) for token in tokens] == [
        ("NAME", "add", 0),
        ("OPEN", "(", 3),
        ("OPERAND", "@0", 4),
        ("COMMA", ",", 6),
        ("NUMBER", "1.5", 8),
        ("CLOSE", ")", 11),
        ("END", "", 12),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-3",
        "+3",
        "1e-5",
        "1E5",
        "1.000000e20",
        "-2.5",
        "4.",
        ".5",
        "inf",
        "-inf",
        "nan",
        "-nan",
        "nan.0",
        "inf.0",
        "2.000000e+00+3.000000e+00j",
        "-2.000000e+00-3.000000e-05j",
        "nan+infj",
        "3j",
    ],
)
def test_number_literals(text: str) -> None:
    assert kinds(text) == ["NUMBER", "END"]


def test_a_word_that_begins_like_a_number_is_a_name() -> None:
    assert kinds("info") == ["NAME", "END"]
    assert kinds("nano.x") == ["NAME", "END"]


def test_names_take_dots() -> None:
    assert next(tokenize("torch.float(@0)")).text == "torch.float"


def test_space_between_tokens_is_skipped() -> None:
    assert kinds(" [ 1 ,\t2 ]\n") == ["OPEN_LIST", "NUMBER", "COMMA", "NUMBER", "CLOSE_LIST", "END"]
    assert kinds("  ") == ["END"]


@pytest.mark.parametrize(
    ("source", "position", "problem"),
    [
        ("add(@,1)", 4, "operand's number"),
        ("@x", 0, "operand's number"),
        ("@1x", 0, "operand's number"),
        ("add(1.2.3)", 4, "not a number"),
        ("1e", 0, "not a number"),
        ("12abc", 0, "not a number"),
        ("-", 0, "not a number"),
        ("add(@0;@1)", 6, "unexpected character ';'"),
        ("@0\u0663", 2, "not a number"),
        ("\x00", 0, r"unexpected character '\\x00'"),
    ],
)
def test_unreadable_characters(source: str, position: int, problem: str) -> None:
    with pytest.raises(ExpressionError, match=problem) as caught:
        list(tokenize(source))
    assert caught.value.position == position


def test_too_long_a_source_is_refused_before_it_is_read() -> None:
    with pytest.raises(ExpressionError, match="maximum is"):
        next(tokenize("1" * (MAX_LENGTH + 1)))


def test_a_long_run_of_digits_takes_linear_time() -> None:
    with pytest.raises(ExpressionError, match="not a number"):
        list(tokenize("1" * (MAX_LENGTH - 1) + "x"))


def test_every_kind_of_token_has_words() -> None:
    assert all(kind.value for kind in TokenKind)
    *_, end = tokenize("1")
    assert str(end) == "the end of the expression"
