"""A sentence of a length that the server has not seen, with each pair of requests."""

import io
from collections.abc import Iterator

import numpy as np

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn, post
from tests.attack.models import ENCODER

PATH = f"/infer?model={ENCODER}&trace=off"
FIRST, STEP = 5, 3
"""Tokens of the first sentence, and by how many the next is longer."""


def run(target: Target, count: int) -> None:
    """Send sentences of `count` lengths, each twice: what came once is not compiled, and what came again may be."""
    ask_in_turn(target, _requests(count))


def _requests(count: int) -> Iterator[bytes]:
    for length in range(FIRST, FIRST + STEP * count, STEP):
        body = io.BytesIO()
        np.save(body, np.arange(length)[None])
        yield from [post(PATH, body.getvalue(), "application/octet-stream")] * 2


LENGTHS = Attack(
    "a new length of sentence with each pair of requests", "lengths", run, (3, 50, 150), models=(ENCODER,)
)
