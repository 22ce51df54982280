"""What a request's body said."""

from dataclasses import dataclass, field

from engine import Array
from service.codec.options import Options


@dataclass(frozen=True, slots=True)
class Decoded:
    """A request's body as arrays.

    Attributes:
        inputs: operand name -> array of the declared rank and dtype, one for each input of the graph. Arrays may be
            read-only views of the body.
        options: what the body asked for beside.
    """

    inputs: dict[str, Array]
    options: Options = field(default_factory=Options)
