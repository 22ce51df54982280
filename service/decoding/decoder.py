"""Decodes large bodies in a process of its own, which can be killed."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import orjson

from engine import Array
from service.decoding import shared_file
from service.decoding.frames import MAX_OBJECT, read_frame, write_frame
from service.errors import ServiceError

COMMAND: Sequence[str] = (sys.executable, "-P", "-m", "service.decoding.process")
"""What is run."""
START_SECONDS = 60.0
"""Seconds that the process may take to start."""
_END_SECONDS = 1.0
"""Seconds that a process which no longer responds may take to end by itself."""
IDLE_SECONDS = 2.0
"""Seconds after which the process is ended if there is nothing to decode; its memory goes with it."""
_TIMEOUT_FACTOR = 3.0
"""Timeout of decoding, as a multiple of the limit of its processor time."""
SPARE_BYTES = 256 << 20
"""Memory of the process besides what the body needs."""
_NICENESS = 10
_GROUP_NICENESS = 4
"""Of its session, outside which the niceness of a process has no effect where the system groups sessions: 0.4 of the
processor time of others, as all other programs of the machine, not only the server, come before it."""
_GROWTH = 4
"""How many times as many bytes as the body its result may have, besides arrays."""
_REFUSALS = frozenset((400, 413, 415, 422))
"""Statuses of errors that a body may have."""
_NUMPY_VARIABLES = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES")
"""What chooses numpy's instructions: a large image gets the bits that a small one gets in the server."""
_KEPT_VARIABLES = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "SYSTEMROOT",
    "VIRTUAL_ENV",
    *_NUMPY_VARIABLES,
)
"""Variables of the environment that the process gets; the others may be secrets."""

Result = TypeVar("Result")
_numbers = count()
_logger = logging.getLogger(__name__)


def _nothing_ended() -> dict[str, int]:
    return {"decoding_too_long": 0, "decoder_failed": 0}


class NeedsDecoderError(Exception):
    """A worker has met a large body or response, which it leaves to a thread with a decoder, to begin again there."""


class DecodingStoppedError(Exception):
    """Nobody waits for what is decoded any more; the message says why."""


@dataclass(frozen=True, slots=True)
class Task:
    """A body to be decoded.

    Attributes:
        function: module and name of `read(data, arguments) -> (result as JSON, arrays)`.
        data: the body.
        arguments: as JSON.
        room: maximum bytes of the arrays.
        memory: bytes that the process may take for it, besides `room` and `SPARE_BYTES`.
        accepts: whether a result may be that of the body; a process with another result is ended.
    """

    function: tuple[str, str]
    data: bytes | memoryview
    arguments: dict[str, Any]
    room: int
    memory: int
    accepts: Callable[[Any, list[Array]], bool]


class _DecoderProcess:
    """The process, from its start to its end.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.file = shared_file.create()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the command is our own
                (*command, str(self.file)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_environment(),
                pass_fds=(self.file,),
                start_new_session=True,  # Ctrl-C is for the server, which ends it
            )
        except OSError:
            os.close(self.file)
            raise
        _be_modest(self._process.pid)
        self.requests = cast("BinaryIO", self._process.stdin)
        self.responses = cast("BinaryIO", self._process.stdout)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def is_out_of_time(self) -> bool:
        """Return whether the system has ended it, or ends it now, as it has computed for too long."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(_END_SECONDS) == -getattr(signal, "SIGXCPU", 0)
        return False

    def kill(self) -> None:
        """End it, whatever it does."""
        with suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """End it, and return when it has ended."""
        self.kill()
        self._process.wait()
        for pipe in (self.requests, self.responses):
            with suppress(OSError):
                pipe.close()
        os.close(self.file)

    def run(self, task: Task, seconds: float | None) -> tuple[Any, list[Array]] | ServiceError | MemoryError:
        """Have the process decode a body; returns the result, or why there is none.

        Args:
            task: the body.
            seconds: of the processor that it may take; None: what is left of those said before.

        Raises:
            EOFError, OSError, ValueError: it has ended, or returns what it never should.
        """
        number = next(_numbers)
        os.ftruncate(self.file, task.room)
        head = {
            "number": number,
            "function": task.function,
            "arguments": task.arguments,
            "seconds": seconds,
            "room": task.room,
            "bytes": task.memory + SPARE_BYTES,
        }
        write_frame(self.requests, head, task.data)
        response, result = read_frame(self.responses, _GROWTH * len(task.data) + MAX_OBJECT)
        # what decodes hostile bytes may have come under their control: nothing that it says is trusted
        if response.get("number") != number:
            raise ValueError("the response is that of another body")
        if response.get("is_out_of_memory") is True:
            return MemoryError()
        if "problem" in response:
            return _refusal(response["problem"])
        arrays = shared_file.read(self.file, task.room, response.get("arrays"))
        os.ftruncate(self.file, 0)  # its memory is free
        decoded = orjson.loads(result)
        if not task.accepts(decoded, arrays):
            raise ValueError("the result is not that of the body")
        return decoded, arrays


class _Alarm:
    """Ends a process after some seconds, unless it is left before.

    Attributes:
        has_rung: whether the time was up.

    Raises:
        MemoryError: there is no room for its thread.
    """

    def __init__(self, process: _DecoderProcess, seconds: float) -> None:
        self.has_rung = False
        self._process = process
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True

    def __enter__(self) -> "_Alarm":
        try:
            self._timer.start()
        except RuntimeError as error:
            raise MemoryError from error
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()  # it never ends a process that is at work for somebody else by then

    def _ring(self) -> None:
        self.has_rung = True
        self._process.kill()


class Decoder:
    """Decodes bodies in a process, one request's at a time.

    The process is started when it is needed, and ended where it takes too long, nobody waits any more, or it has had
    nothing to do for a while. Any thread may use it.

    Args:
        command: what is run; None: the decoder. For tests.
        ended: counts processes that were ended with each error.
    """

    def __init__(self, command: Sequence[str] | None = None, ended: dict[str, int] | None = None) -> None:
        self._command = command
        self.ended = _nothing_ended() if ended is None else ended
        self._lock = threading.Lock()
        self._stopping = threading.Lock()
        self._stop_reason: str | None = None
        self._process: _DecoderProcess | None = None
        self._idle: threading.Timer | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        process = self._process
        return process is not None and not process.has_ended

    @contextmanager
    def stoppable(self) -> Iterator[Callable[[str], None]]:
        """Yield what has decoding in this context end with a `DecodingStoppedError`; any thread may call it, ever."""
        is_on = True

        def stop(reason: str) -> None:
            with self._stopping:
                if is_on:
                    self._stop_reason = reason
                    if self._process is not None:
                        self._process.kill()

        try:
            yield stop
        finally:
            with self._stopping:
                is_on, self._stop_reason = False, None

    def run(self, tasks: Sequence[Task], seconds: float, what: str) -> list[tuple[Any, list[Array]]]:
        """Decode the bodies of a request, one after the other.

        Args:
            tasks: the bodies.
            seconds: of the processor that all of them may take; three times that in all.
            what: what they are, for messages, such as "the image takes".

        Returns:
            The result of each, and its arrays.

        Raises:
            ServiceError: what is wrong with the first that is not sound; 422 `decoding_too_long`; 503
                `decoder_failed`: the process has ended before its time.
            MemoryError: there is too little memory.
            DecodingStoppedError: nobody waits any more.
        """
        with self._lock:
            process = self._started()
            self._check_wanted()
            alarm = _Alarm(process, seconds * _TIMEOUT_FACTOR)
            try:
                with alarm:
                    results = _run_all(process, tasks, seconds)
            except (EOFError, OSError, ValueError) as error:
                self._discard_stopped()
                is_too_long = alarm.has_rung or process.is_out_of_time()
                raise self._discarded(_too_long(what, seconds) if is_too_long else _failed()) from error
            except BaseException:
                self._discard()  # a response that nobody has read would be taken for the next one
                raise
            if alarm.has_rung:  # just after the last response
                self._discard()
            self._end_when_idle()
        if not isinstance(results, list):
            raise results
        return results

    def close(self) -> None:
        """End the process; another is started if it is needed."""
        with self._lock:
            self._discard()

    def _check_wanted(self) -> None:
        if self._stop_reason is not None:
            raise DecodingStoppedError(self._stop_reason)

    def _discard_stopped(self) -> None:
        """End the process and log why, if nobody waits for it any more."""
        if self._stop_reason is not None:
            self._discard()
            self._check_wanted()

    def _started(self) -> _DecoderProcess:
        """Return the process, ready for a body; called in turn."""
        self._stop_waiting()
        if self._process is not None and self._process.has_ended:
            self._discard()
        if self._process is not None:
            return self._process
        try:
            self._process = process = _DecoderProcess(self._command or COMMAND)
            with _Alarm(process, START_SECONDS):
                read_frame(process.responses, 0)
        except (EOFError, OSError, ValueError) as error:
            self._discard_stopped()
            raise self._discarded(_failed()) from error
        return process

    def _end_when_idle(self) -> None:
        if self._process is None:
            return
        self._idle = timer = threading.Timer(IDLE_SECONDS, lambda: self._end_idle(timer))
        timer.daemon = True
        with suppress(RuntimeError):  # no room for its thread: the process waits for the next body
            timer.start()

    def _end_idle(self, timer: threading.Timer) -> None:
        with self._lock:
            if self._idle is timer:
                self._discard()

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _discarded(self, error: ServiceError) -> ServiceError:
        """End the process, and return an error that is to be raised."""
        _logger.warning("a decoder process is ended: %s", error.message)
        self.ended[error.code] += 1
        self._discard()
        return error

    def _discard(self) -> None:
        self._stop_waiting()
        process, self._process = self._process, None
        if process is not None:
            process.close()


class Decoders:
    """All decoders of the server: as many as threads need at the same time.

    Attributes:
        ended: how many processes were ended with each error.
    """

    def __init__(self) -> None:
        self.ended = _nothing_ended()
        self._lock = threading.Lock()
        self._all: list[Decoder] = []
        self._free: list[Decoder] = []
        """The one that was used last, whose process may still run, comes last."""

    @property
    def running(self) -> int:
        """How many processes there are."""
        return sum(decoder.is_running for decoder in list(self._all))

    def call(self, function: Callable[[], Result]) -> Result:
        """Return what a function returns, which has a decoder for large bodies."""
        with self._lock:
            if not self._free:
                self._free.append(Decoder(ended=self.ended))
                self._all += self._free
            decoder = self._free.pop()
        _here.decoder = decoder
        try:
            return function()
        finally:
            _here.decoder = None
            with self._lock:
                self._free.append(decoder)

    def close(self) -> None:
        """End all processes."""
        for decoder in list(self._all):
            decoder.close()


class _Here(threading.local):
    """Who decodes large bodies that this thread meets.

    Attributes:
        decoder: its decoder; None: the thread itself.
        is_left: whether another thread.
    """

    decoder: Decoder | None = None
    is_left = False


_here = _Here()


def large_body_decoder() -> Decoder | None:
    """Return the decoder of this thread; None where it decodes large bodies itself.

    Raises:
        NeedsDecoderError: it leaves them to other threads.
    """
    if _here.is_left:
        raise NeedsDecoderError
    return _here.decoder


def leave_large(amount: int, most: int) -> None:
    """Leave work that would keep a worker for long, such as writing a large response, to a thread that has a decoder.

    Args:
        amount: how much it is, in bytes or pixels.
        most: the most that any thread does.

    Raises:
        NeedsDecoderError: it is more, and this thread leaves it to others.
    """
    if amount > most and _here.is_left:
        raise NeedsDecoderError


def leaves_large_bodies() -> bool:
    """Return whether this thread leaves large bodies, and other such work, to others."""
    return _here.is_left


@contextmanager
def leaving_large_bodies() -> Iterator[None]:
    """Have this thread leave large bodies to others in this context."""
    _here.is_left = True
    try:
        yield
    finally:
        _here.is_left = False


DECODERS = Decoders()
"""The decoders of the server."""


def _run_all(
    process: _DecoderProcess, tasks: Sequence[Task], seconds: float
) -> list[tuple[Any, list[Array]]] | ServiceError | MemoryError:
    """Have the process decode bodies; the time counts from the first.

    Raises:
        EOFError, OSError, ValueError: as `run` of the process.
    """
    results = []
    for index, task in enumerate(tasks):
        result = process.run(task, seconds if index == 0 else None)
        if not isinstance(result, tuple):
            return result
        results.append(result)
    return results


def _be_modest(process: int) -> None:
    """Have a process, and its session, take the processor after all others, from its start on."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, _NICENESS)
    with suppress(OSError):
        Path(f"/proc/{process}/autogroup").write_text(str(_GROUP_NICENESS))


def _refusal(problem: object) -> ServiceError:
    """Return the error that a process returns.

    Raises:
        ValueError: it is none.
    """
    match problem:
        case [int(status), str(code), str(message), dict(details)] if status in _REFUSALS:
            return ServiceError(status, code[:40], message[:1000], details)
    raise ValueError(f"an invalid error: {repr(problem)[:80]}")


def _too_long(what: str, seconds: float) -> ServiceError:
    message = f"{what} more than {seconds:g} s to decode"
    return ServiceError(422, "decoding_too_long", message, {"limit": seconds, "unit": "seconds"})


def _failed() -> ServiceError:
    message = "the process that decodes large bodies has ended unexpectedly"
    return ServiceError(503, "decoder_failed", message, headers={"Retry-After": "1"})


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    paths = [str(Path(__file__).parents[2]), *(path for path in sys.path if path)]
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
