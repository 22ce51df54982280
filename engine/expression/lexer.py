"""Expression text -> tokens."""

import re
from collections.abc import Iterator

from engine.errors import ExpressionError
from engine.expression.tokens import Token, TokenKind

MAX_LENGTH = 1 << 18
"""Longest expression accepted, in characters: many times what the largest exported models hold."""

# Possessive, so that a long run of digits is read once whatever follows it. `nan.0` is PNNX's own.
_REAL = r"(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?+|(?:inf|nan)(?:\.0)?+)"

_TOKEN = re.compile(
    rf"""
    (?P<NUMBER> [+-]?{_REAL}(?:[+-]{_REAL}j|j)? (?![\w.@]) )
  | (?P<NAME> [A-Za-z_][\w.]* )
  | (?P<OPERAND> @\d+ (?![\w.]) )
  | (?P<OPEN> \( )
  | (?P<CLOSE> \) )
  | (?P<OPEN_LIST> \[ )
  | (?P<CLOSE_LIST> \] )
  | (?P<COMMA> , )
    """,
    re.VERBOSE | re.ASCII,
)
_SPACE = re.compile(r"\s*")


def tokenize(source: str) -> Iterator[Token]:
    """Yield the tokens of `source`, the last one of kind END.

    Raises:
        ExpressionError: the source is too long, or has characters that begin no token.
    """
    if len(source) > MAX_LENGTH:
        raise ExpressionError(
            source, MAX_LENGTH, f"expression of {len(source)} characters; the maximum is {MAX_LENGTH}"
        )
    position = _skip_space(source, 0)
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise ExpressionError(source, position, _unreadable(source, position))
        yield Token(TokenKind[match.lastgroup], match.group(), position)
        position = _skip_space(source, match.end())
    yield Token(TokenKind.END, "", len(source))


def _skip_space(source: str, position: int) -> int:
    match = _SPACE.match(source, position)
    return match.end() if match else position


def _unreadable(source: str, position: int) -> str:
    character = source[position]
    if character == "@":
        return "expected an operand's number after '@'"
    if character.isdigit() or character in "+-.":
        return "not a number"
    return f"unexpected character {character!r}"
