"""The records of a zip archive, as far as stored archives need them (APPNOTE.TXT 4.3, 4.5.3)."""

from struct import Struct

LOCAL_HEADER = Struct("<4s5H3I2H")
CENTRAL_HEADER = Struct("<4s6H3I5H2I")
END_RECORD = Struct("<4s4H2IH")
ZIP64_END_RECORD = Struct("<4sQ2H2I4Q")
ZIP64_LOCATOR = Struct("<4sIQI")

LOCAL_MARK = b"PK\x03\x04"
CENTRAL_MARK = b"PK\x01\x02"
END_MARK = b"PK\x05\x06"
ZIP64_END_MARK = b"PK\x06\x06"
ZIP64_LOCATOR_MARK = b"PK\x06\x07"

ZIP64_EXTRA = 0x0001
ALIGNMENT_EXTRA = 0xD935
"""Extra field that Android's zipalign pads with: readers skip it."""

ENCRYPTED_FLAGS = 0x2041
"""Encrypted, strongly encrypted, headers encrypted."""
DESCRIPTOR_FLAG = 0x0008
"""Sizes and checksum follow the data, in one of `DESCRIPTOR_LENGTHS` bytes."""
DESCRIPTOR_LENGTHS = (12, 16, 20, 24)

FULL_16 = 0xFFFF
FULL_32 = 0xFFFFFFFF
"""All bits set: the value stands in a zip64 record."""
