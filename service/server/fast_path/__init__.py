"""Requests that run a model and are as plain as nearly all of them are: the connection answers them itself.

For a small model the layers of an application cost more than the run: tasks, events, middleware, routing. A plain
request needs none of them. `Desk` tells which requests are plain; all others, and all that are refused before their
bodies have come, go through the application, which answers them as if there were no desk.

A plain request meets the same parts as any other: lifecycle, keys, repository, intake, room, body budget, dispatcher,
metrics, access log.
"""

from service.server.fast_path.body_reader import BodyReader
from service.server.fast_path.desk import Desk, desk_of
from service.server.fast_path.request import DirectRequest

__all__ = ["BodyReader", "Desk", "DirectRequest", "desk_of"]
