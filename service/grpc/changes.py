"""Calls that change the server, where several processes are to change alike."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from service.errors import ServiceError
from service.http.changes import common_reply
from service.processes.messages import Call
from service.processes.siblings import Siblings

_HEADERS = (("content-type", "application/json"),)


async def change_all(siblings: Siblings | None, path: str, document: Mapping[str, Any]) -> bool:
    """Have every process do what a request over HTTP would; returns whether there are several.

    Changes by both protocols are made in one order, and by processes that start later as well.

    Args:
        siblings: the other processes; None where this one is the only one, and nothing is done.
        path: path of the same call over HTTP.
        document: body of the same call over HTTP.

    Raises:
        ServiceError: this process refuses, and nothing has changed anywhere; 500 `processes_differ`; 503
            `shutting_down`.
    """
    if siblings is None:
        return False
    call = Call("POST", path, headers=_HEADERS, body=json.dumps(document).encode())
    reply = common_reply(await siblings.change(call))
    if reply.status >= HTTPStatus.BAD_REQUEST:
        told = json.loads(reply.body)
        raise ServiceError(reply.status, told["code"], told["error"], told.get("details"))
    return True
