"""Where the tokens of a text lie in its row of an input."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextSpan:
    """The tokens of a text: the first `length` of its row; what follows fills the row up.

    Attributes:
        length: number of tokens, those that the tokenizer adds included.
    """

    length: int
