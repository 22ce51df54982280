"""Damage of files whose bytes are not known beforehand."""


def damaged_at(data: bytes, place: int) -> bytes:
    """Return data of which one byte is another one; a constant in its place might be the byte that is there."""
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)
