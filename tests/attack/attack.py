"""An attack: what a hostile client does, how large, and to what kind of server."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from tests.attack.wire import Wire


class Scale(IntEnum):
    """How large attacks are; the place of the size in `Attack.sizes`."""

    SHORT = 0
    USUAL = 1
    FULL = 2


@dataclass
class Target:
    """The server under attack, and what the attacker has seen of it.

    Attributes:
        port: where it listens, on 127.0.0.1.
        process_id: of the server.
        seconds: how long an attack goes on that needs time rather than bytes.
        sent: bytes that the attacker has sent.
        replies: responses by status and error code, such as "503 queue_full".
    """

    port: int
    process_id: int
    seconds: float
    sent: int = 0
    replies: Counter[str] = field(default_factory=Counter)

    def connect(self, receive_buffer: int | None = None, address: str | None = None) -> Wire:
        """Open a connection; what is sent on it counts as the cost of the attack.

        Args:
            receive_buffer: bytes that the attacker's system takes in before the attacker reads; None: its default.
            address: the attacker's own, on loopback; None: that of the honest clients.
        """
        return Wire(self, receive_buffer, address)

    def hold(self) -> None:
        """Go on doing nothing for as long as the attack lasts."""
        time.sleep(self.seconds)


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes:
        name: for the table.
        unit: what its size counts, for the table.
        run: does it to a target, in a size.
        sizes: by `Scale`.
        flags: of `kuiper serve`.
        address_space: limit on the server's address space, in bytes; None: no limit.
        models: of `tests.attack.models`, which are served beside the usual ones.
        descriptors: limit on the server's file descriptors; None: that of the caller.
        is_measured: whether what honest clients notice is limited, and not only that the server lives.
    """

    name: str
    unit: str
    run: Callable[[Target, int], None]
    sizes: tuple[int, int, int]
    flags: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    address_space: int | None = None
    descriptors: int | None = None
    is_measured: bool = True

    @property
    def is_on_usual_server(self) -> bool:
        """Whether it is made on a server as it is by default."""
        return not self.flags and not self.models and self.address_space is None and self.descriptors is None
