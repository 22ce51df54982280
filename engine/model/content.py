"""Content digest of a graph: two graphs of equal digests compute the same."""

import hashlib
from collections.abc import Iterable

from engine.model.operator import RuntimeOperator
from engine.pnnx.mapped_pages import release_pages

_BLOCK = 1 << 20
"""Bytes of weights that are read at a time."""


def content_digest(operators: Iterable[RuntimeOperator], *options: object) -> str:
    """Return the SHA-256 of a model's operators and weights, as hexadecimal digits.

    It is taken of what was read, not of the files, which may be others by now. Weights count by the digest of the
    archive that they were read from, where that is known.

    Args:
        operators: all operators of the graph, in file order.
        options: other options that affect the results or their precision; their `repr` must include all of it.
    """
    digest = hashlib.sha256(repr(options).encode())
    for operator in operators:
        source = operator.source
        declared = [(operand.name, operand.type) for operand in operator.outputs]
        links = (source.inputs, source.outputs, source.input_names, declared)
        digest.update(repr((source.type, source.name, source.params, links)).encode())
        for key, attribute in source.attrs.items():
            digest.update(repr((key, attribute.shape, attribute.dtype)).encode())
            digest.update(attribute.digest.encode() if attribute.digest else _digest(attribute.data))
    return digest.hexdigest()


def _digest(data: memoryview) -> bytes:
    digest = hashlib.sha256()
    for first in range(0, len(data), _BLOCK):
        block = data[first : first + _BLOCK]
        digest.update(block)
        release_pages(block)
    return digest.digest()
