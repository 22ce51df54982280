"""Documents with an entity tag, by which a client knows whether its copy is still current."""

from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class TaggedDocument:
    """A document and the tag that distinguishes it from others.

    Attributes:
        content: its bytes.
        tag: its entity tag, in quotes as `ETag` and `If-None-Match` have it.
    """

    content: bytes
    tag: str


def tagged(content: bytes) -> TaggedDocument:
    """Return a document with a tag made of its content."""
    return TaggedDocument(content, f'"{sha256(content).hexdigest()[:32]}"')
