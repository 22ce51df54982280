"""Bodies that are promised and never sent."""

from contextlib import ExitStack

from tests.attack.attack import Attack, Target
from tests.attack.wire import request_head

PROMISE = 32 << 20


def run(target: Target, count: int) -> None:
    """Promise bodies on `count` connections, and send none of them."""
    head = request_head("/infer?model=digits", PROMISE)
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(target.connect()).send(head)
        target.hold()


PROMISED_BODIES = Attack("promised bodies", "connections", run, (20, 243, 243))
