"""Many requests on each connection, sent ahead of the responses, which nobody reads."""

from contextlib import ExitStack

from tests.attack.attack import Attack, Target

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
PIPELINED = 3600


def run(target: Target, count: int) -> None:
    """Pipeline requests on `count` connections, as far as the server takes them, and read no response."""
    pipeline = REQUEST * PIPELINED
    with ExitStack() as stack:
        wires = [stack.enter_context(target.connect(receive_buffer=4096)) for _ in range(count)]
        for wire in wires:
            wire.send_some(pipeline)
        target.hold()


PIPELINES = Attack("3,600 pipelined requests, no response read", "connections", run, (5, 100, 200))
