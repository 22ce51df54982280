"""The result of decoding a request's body."""

from dataclasses import dataclass, field

from engine import Array
from service.codec.options import Options
from service.images.geometry import ImageGeometry


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a request's body.

    Attributes:
        input: operator name of the input that it was made one of.
        data: the encoded picture.
        geometry: where it lies in its item of the input.
        is_animated: whether it is the first of several frames.
    """

    input: str
    data: bytes
    geometry: ImageGeometry
    is_animated: bool = False


@dataclass(frozen=True, slots=True)
class Decoded:
    """A request's body as arrays.

    Attributes:
        inputs: operand name -> array of the declared rank and dtype, one for each input of the graph. Arrays may be
            read-only views of the body.
        options: the options that the body contains.
        pictures: the pictures that inputs were made of, those of an input one after the other.
        token_counts: how many tokens of its text each row begins with, if the inputs were made of texts.
        texts: these texts.
    """

    inputs: dict[str, Array]
    options: Options = field(default_factory=Options)
    pictures: tuple[Picture, ...] = ()
    token_counts: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
