"""Tokens of an expression."""

from dataclasses import dataclass
from enum import Enum


class TokenKind(Enum):
    """Kinds of token, each with the words an error message uses for it."""

    NAME = "a name"
    NUMBER = "a number"
    OPERAND = "an operand"
    OPEN = "'('"
    CLOSE = "')'"
    OPEN_LIST = "'['"
    CLOSE_LIST = "']'"
    COMMA = "','"
    END = "the end of the expression"


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its text and its 0-based offset in the source."""

    kind: TokenKind
    text: str
    position: int

    def __str__(self) -> str:
        return self.kind.value if self.kind is TokenKind.END else repr(self.text[:40])
