"""Chooses among versions so that each gets its share: in turn, or by a value that always leads to the same version."""

from bisect import bisect_right
from collections.abc import Mapping
from hashlib import blake2b
from itertools import accumulate
from math import log
from random import SystemRandom

_WHOLE = 1 << 64
_STEP = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, made odd: multiples of it modulo 2^64 lie more evenly than those of other steps."""
_FRACTION_BITS = 52
"""Bits of a hash that a float holds exactly beside one more for a half."""


class Split:
    """Shares choices among versions.

    Choices in turn follow a Weyl sequence: of any n in a row each version gets its share up to a few, and so it does of
    every second or tenth of them, whatever pattern requests come in. A value is chosen for by weighted rendezvous
    hashing (Thaler and Ravishankar 1998; weights as Mosko 2016 has them): as the weights change, only as many values
    change their version as have to, and those of a version that is gone spread over the others by weight.

    Args:
        name: the model; the same value leads to unrelated choices for other models.
        shares: the part of each version, above 0 and 1 in all; one version at least.
        start: where the sequence begins, so that processes side by side are not in step; by default at random.
    """

    def __init__(self, name: str, shares: Mapping[str, float], start: int | None = None) -> None:
        self._versions = tuple(shares)
        self._bounds = [round(bound * _WHOLE) for bound in accumulate(shares.values())][:-1]
        self._turn = SystemRandom().getrandbits(64) if start is None else start
        self._keys = [(version, share, _key(name, version)) for version, share in shares.items()]

    def next(self) -> str:
        """Return the next version."""
        self._turn = (self._turn + _STEP) % _WHOLE
        return self._versions[bisect_right(self._bounds, self._turn)]

    def of(self, value: bytes) -> str:
        """Return the version that a value leads to; the same in every process."""
        best, version = -1.0, ""
        for candidate, share, key in self._keys:
            score = -share / log(_fraction(value, key))
            if score > best:
                best, version = score, candidate
        return version


def _key(name: str, version: str) -> bytes:
    return blake2b(f"{name}/{version}".encode()).digest()


def _fraction(value: bytes, key: bytes) -> float:
    """Return a number between 0 and 1, neither of them, that looks random."""
    digest = int.from_bytes(blake2b(value, digest_size=8, key=key).digest(), "big")
    return ((digest >> (64 - _FRACTION_BITS)) + 0.5) / (1 << _FRACTION_BITS)
