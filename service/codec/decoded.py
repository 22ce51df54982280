"""The result of decoding a request's body."""

from dataclasses import dataclass, field

from engine import Array
from service.codec.options import Options


@dataclass(frozen=True, slots=True)
class Decoded:
    """A request's body as arrays.

    Attributes:
        inputs: operand name -> array of the declared rank and dtype, one for each input of the graph. Arrays may be
            read-only views of the body.
        options: the options that the body contains.
    """

    inputs: dict[str, Array]
    options: Options = field(default_factory=Options)
