"""An encoded image of a request, whose header was read and found acceptable."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.images.image_header import ImageHeader

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image that may be decoded.

    Attributes:
        data: its bytes.
        header: what its header says.
        place: how messages name it.
        opened: as Pillow has read it, without its pixels; None where Pillow has not seen it yet.
    """

    data: bytes
    header: ImageHeader
    place: str
    opened: "Image.Image | None" = None

    @property
    def size(self) -> tuple[int, int]:
        """Its columns and rows."""
        return self.header.width, self.header.height
