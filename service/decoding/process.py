"""A decoder process: `python -m service.decoding.process DESCRIPTOR`.

It reads messages from its standard input and writes responses to its standard output; see `frames.py`. A request names
the function that reads the body; a response is what that returned, with its arrays in the shared file, or an error.
What decodes hostile bytes may use as much memory and time as they can need, and open or write nothing; it ends when the
server does.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, NoReturn

import orjson

from service.decoding import shared_file
from service.decoding.frames import read_frame, write_frame
from service.errors import ServiceError

_OOM_SCORE = 500
"""The system ends this process rather than the server where memory is short."""
_MAX_BYTES = 1 << 40


@dataclass(frozen=True, slots=True)
class _Request:
    head: dict[str, Any]
    data: bytes


def main() -> NoReturn:
    """Serve requests until there are no more."""
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get among the responses
    be_modest()
    write_frame(responses, {})
    requests: SimpleQueue[_Request] = SimpleQueue()
    Thread(target=_receive, args=(sys.stdin.buffer, requests.put), daemon=True).start()
    descriptor = int(sys.argv[1])
    while True:
        request = requests.get()
        respond(request.head, request.data, descriptor, responses)
        del request  # its bytes, while the next one comes


def respond(head: dict[str, Any], data: bytes, descriptor: int, responses: BinaryIO) -> None:
    """Decode a body, and write the result; or else `problem`, or that there is too little memory."""
    number, room = head["number"], head["room"]
    module, name = head["function"]
    read = getattr(import_module(module), name)
    limit(head["seconds"], head["bytes"] + room)
    try:
        result, arrays = read(data, head["arguments"])
        places = shared_file.write(descriptor, room, arrays)
    except MemoryError:
        write_frame(responses, {"number": number, "is_out_of_memory": True})
    except ServiceError as error:
        problem = [error.status, error.code, error.message, error.details]
        write_frame(responses, {"number": number, "problem": problem})
    else:
        write_frame(responses, {"number": number, "arrays": places}, orjson.dumps(result))


def be_modest() -> None:
    """Take memory after the server, and write no files."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  # there is none on Windows

    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))


def limit(seconds: float | None, max_bytes: int) -> None:
    """Have the system limit what the process takes from now on, as far as it is not limited already.

    Args:
        seconds: that it may compute, before it is ended; None: as long as was said before.
        max_bytes: that its address space may grow.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  # there is none on Windows

    limits = [(resource.RLIMIT_AS, _address_space() + max_bytes)]
    if seconds is not None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        limits.append((resource.RLIMIT_CPU, ceil(usage.ru_utime + usage.ru_stime + seconds)))
    for kind, wanted in limits:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _receive(file: BinaryIO, take: Callable[[_Request], None]) -> None:
    """Read requests in a thread of its own: where the server has ended, this process does at once."""
    with suppress(EOFError, OSError, ValueError, MemoryError):
        while True:
            take(_Request(*read_frame(file, _MAX_BYTES)))
    os._exit(0)


def _address_space() -> int:
    """Return the bytes of the address space that are taken; 0 where the system does not say."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


if __name__ == "__main__":
    main()
