"""One client that has graphs drawn, runs compared and expressions explained, as much as it can."""

import threading
import time
from itertools import cycle, islice

import numpy as np

from tests.attack.attack import Attack, Target
from tests.attack.attacks.floods import ADDRESS
from tests.attack.attacks.requests import post
from tests.service.codec.payloads import npy

ROWS = 200
"""Rows of each run that is compared."""
_TERMS = 60
"""Terms of each expression."""


def run(target: Target, count: int) -> None:
    """Ask on `count` connections at once, again and again, whatever comes."""
    images = np.random.default_rng(0).random((ROWS, 1, 28, 28), np.float32)
    compared = post("/compare?model=digits&with_backend=numpy", npy(images), "application/octet-stream")
    expression = ("add(" * _TERMS + "@0" + ",1)" * _TERMS).encode()
    requests = (
        compared,
        post("/expression", b'{"text": "%b", "values": [1]}' % expression, "application/json"),
        *(
            f"GET {page} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
            for page in ("/graph?model=digits&format=layout&collapse=none", "/graph/schedule?model=digits")
        ),
    )
    until = time.monotonic() + target.seconds

    def ask(request: bytes) -> None:
        while time.monotonic() < until:
            with target.connect(address=ADDRESS) as wire:
                while time.monotonic() < until and wire.send(request) and wire.reply():
                    pass

    threads = [threading.Thread(target=ask, args=(request,)) for request in islice(cycle(requests), count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


INSPECTIONS = Attack("one client that has much inspected", "connections at once", run, (4, 16, 32))
