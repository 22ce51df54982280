"""A large picture that is read some rows at a time, so that the whole of it is in memory once."""

from collections.abc import Callable, Iterator

from PIL import Image

_STRIP_PIXELS = 1 << 20
"""Pixels that are read at a time."""
_FROM_COLUMNS = frozenset(
    (
        Image.Transpose.TRANSPOSE,
        Image.Transpose.ROTATE_270,
        Image.Transpose.ROTATE_90,
        Image.Transpose.TRANSVERSE,
    )
)
"""Transpositions that make rows of columns."""
_FROM_END = frozenset(
    (
        Image.Transpose.ROTATE_180,
        Image.Transpose.FLIP_TOP_BOTTOM,
        Image.Transpose.ROTATE_90,
        Image.Transpose.TRANSVERSE,
    )
)
"""Transpositions that begin with the last row or column."""


class PictureStrips:
    """A decoded image whose rows are turned upright and converted when they are asked for.

    Of 64 million pixels, each copy of the whole would take 256 MB.

    Args:
        image: the image, as it was decoded.
        mode: `L` or `RGB`.
        convert: returns some pixels of the image in that mode; what it raises, `rows` raises.
        turn: the transposition that turns the image upright; None where it is.

    Attributes:
        width: columns, upright.
        height: rows, upright.
        mode: as above.
    """

    def __init__(
        self,
        image: Image.Image,
        mode: str,
        convert: Callable[[Image.Image], Image.Image],
        turn: Image.Transpose | None,
    ) -> None:
        self._image, self._convert, self._turn = image, convert, turn
        self.mode = mode
        self.width, self.height = reversed(image.size) if turn in _FROM_COLUMNS else image.size

    def rows(self, top: int, bottom: int) -> Image.Image:
        """Return the rows from `top` on up to `bottom`, upright."""
        strip = self._convert(self._image.crop(self._box(top, bottom)))
        return strip if self._turn is None else strip.transpose(self._turn)

    def strips(self) -> Iterator[tuple[int, int]]:
        """Yield where each strip of a suitable size begins and ends."""
        size = max(1, _STRIP_PIXELS // self.width)
        for top in range(0, self.height, size):
            yield top, min(top + size, self.height)

    def _box(self, top: int, bottom: int) -> tuple[int, int, int, int]:
        """Return where the pixels of some upright rows lie in the image."""
        if self._turn in _FROM_END:
            top, bottom = self.height - bottom, self.height - top
        if self._turn in _FROM_COLUMNS:
            return top, 0, bottom, self.width
        return 0, top, self.width, bottom


Picture = Image.Image | PictureStrips
"""A picture, upright, of mode `L` or `RGB`."""


def crop_rows(picture: Picture, top: int, bottom: int) -> Image.Image:
    """Return some rows of a picture."""
    if isinstance(picture, PictureStrips):
        return picture.rows(top, bottom)
    return picture.crop((0, top, picture.width, bottom))


def channels_of(picture: Picture) -> int:
    """Return how many channels a picture has."""
    return 1 if picture.mode == "L" else 3
