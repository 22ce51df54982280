"""Has uvicorn, as Ray starts it in a replica, speak HTTP with the server's own connection."""

import os
from typing import Any

from uvicorn.config import HTTP_PROTOCOLS

from service.config.settings import Settings
from service.server.connection import Connection
from service.server.connection_policy import ConnectionPolicy, connection_policy

_policies: list[ConnectionPolicy] = []


def use_own_connection(settings: Settings) -> None:
    """Set what a server uses that this process starts later.

    The connection sends the head of a response together with its body. uvicorn's sends them one after the other, and
    where a replica is killed between the two, the proxy has begun to pass the response on and cannot
    replay the request.
    """
    _policies[:] = [connection_policy(settings)]
    HTTP_PROTOCOLS["auto"] = f"{connect.__module__}:{connect.__name__}"
    # the proxy passes on what clients say of their addresses, and adds nothing to it
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")


def connect(*arguments: Any, **options: Any) -> Connection:
    """Return a connection; uvicorn calls it for each that it accepts."""
    return Connection(*arguments, policy=_policies[0], **options)
