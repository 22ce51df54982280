"""What zlib's errors mean: that a body is damaged, or that there is no memory to unpack it."""

import zlib

_MEMORY_ERROR = "Error -4 "
"""How Python words `Z_MEM_ERROR`, which has the number -4 (zlib.h)."""


def check_memory(error: zlib.error) -> None:
    """Check that an error is the fault of the body that is unpacked.

    Raises:
        MemoryError: it is not: zlib got no memory for its window.
    """
    if str(error).startswith(_MEMORY_ERROR):
        raise MemoryError("not enough memory to decompress the body") from error
