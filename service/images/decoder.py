"""Decodes large images in a process of its own, which can be ended."""

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from engine import Array
from service.config.image_config import ImageConfig
from service.errors import ServiceError
from service.images.encoded_image import EncodedImage
from service.images.frames import read_frame, write_frame

START_SECONDS = 60.0
"""Seconds that the process may take to start."""
_END_SECONDS = 1.0
"""Seconds that a process which answers no more may take to end by itself."""
IDLE_SECONDS = 2.0
"""Seconds after which the process is ended if there is nothing to decode; its memory goes with it."""
_PATIENCE = 3.0
"""How many times as long decoding may take as the processor has time for it, which others use first."""
_PIXEL_BYTES = 8
"""Bytes of memory for each weighted pixel: four of the image, and what decoders and filters take besides."""
_SPARE_BYTES = 256 << 20
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "VIRTUAL_ENV")
"""Variables of the environment that the process gets; the others may be secrets."""

_numbers = count()
_logger = logging.getLogger(__name__)


class _DecoderProcess:
    """The process, from its start to its end.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # the command is our own
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the server, which ends it
        )
        self.requests = cast("BinaryIO", self._process.stdin)
        self.answers = cast("BinaryIO", self._process.stdout)

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
        for pipe in (self.requests, self.answers):
            with suppress(OSError):
                pipe.close()


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
    """Decodes images in a process, one request's at a time, as several large ones would take too much memory.

    The process is started when it is needed, and ended where it takes too long, or has had nothing to do for a while.
    Any thread may use it.

    Args:
        command: what is run; None: the decoder. For tests.

    Attributes:
        ended: how many processes were ended with each error.
    """

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = command or (sys.executable, "-P", "-m", "service.images.decoder_process")
        self._turn = threading.Lock()
        self._process: _DecoderProcess | None = None
        self._idle: threading.Timer | None = None
        self.ended = {"decoding_too_long": 0, "decoder_failed": 0}

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        process = self._process
        return process is not None and not process.has_ended

    def decode(
        self, images: Sequence[EncodedImage], config: ImageConfig, batch: Array, seconds: float
    ) -> list[tuple[int, int]]:
        """Decode the images of a request.

        Args:
            images: the images.
            config: how to prepare them.
            batch: float32 (images, channels, height, width), which is written.
            seconds: of the processor that all of them may take; three times that in all.

        Returns:
            Width and height of each, upright.

        Raises:
            ServiceError: 400 `invalid_image`; 422 `decoding_too_long`; 503 `decoder_failed`: the process has ended
                before its time.
            MemoryError: there is too little memory.
        """
        with self._turn:
            process = self._started()
            alarm = _Alarm(process, seconds * _PATIENCE)
            try:
                with alarm:
                    sizes = _decode_all(process, images, config, batch, seconds)
            except (EOFError, OSError, ValueError) as error:
                is_too_long = alarm.has_rung or process.is_out_of_time()
                problem = _too_long(len(images), seconds) if is_too_long else _failed()
                raise self._discarded(problem) from error
            except BaseException:
                self._discard()  # an answer that nobody has read would be taken for the next one
                raise
            if alarm.has_rung:  # just after the last answer
                self._discard()
            self._end_when_idle()
        if not isinstance(sizes, list):
            raise sizes
        return sizes

    def close(self) -> None:
        """End the process; another is started if it is needed."""
        with self._turn:
            self._discard()

    def _started(self) -> _DecoderProcess:
        """Return the process, ready for an image; called in turn."""
        self._stop_waiting()
        if self._process is not None and self._process.has_ended:
            self._discard()
        if self._process is not None:
            return self._process
        try:
            self._process = process = _DecoderProcess(self._command)
            with _Alarm(process, START_SECONDS):
                read_frame(process.answers, 0)
        except (EOFError, OSError, ValueError) as error:
            raise self._discarded(_failed()) from error
        return process

    def _end_when_idle(self) -> None:
        if self._process is None:
            return
        self._idle = timer = threading.Timer(IDLE_SECONDS, lambda: self._end_idle(timer))
        timer.daemon = True
        with suppress(RuntimeError):  # no room for its thread: the process waits for the next image
            timer.start()

    def _end_idle(self, timer: threading.Timer) -> None:
        with self._turn:
            if self._idle is timer:
                self._discard()

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _discarded(self, error: ServiceError) -> ServiceError:
        """End the process, and return an error that is to be raised."""
        _logger.warning("the process that decodes large images is ended: %s", error.message)
        self.ended[error.code] += 1
        self._discard()
        return error

    def _discard(self) -> None:
        self._stop_waiting()
        process, self._process = self._process, None
        if process is not None:
            process.close()


def _decode_all(
    process: _DecoderProcess,
    images: Sequence[EncodedImage],
    config: ImageConfig,
    batch: Array,
    seconds: float,
) -> list[tuple[int, int]] | ServiceError | MemoryError:
    """Have the process decode images; returns their sizes, or why one of them cannot be decoded.

    Raises:
        EOFError, OSError, ValueError: it has ended, or answers what it never should.
    """
    sizes = []
    for index, (image, out) in enumerate(zip(images, batch, strict=True)):
        size = _exchange(process, image, config, out, seconds if index == 0 else None)
        if not isinstance(size, tuple):
            return size
        sizes.append(size)
    return sizes


def _exchange(
    process: _DecoderProcess, image: EncodedImage, config: ImageConfig, out: Array, seconds: float | None
) -> tuple[int, int] | ServiceError | MemoryError:
    """Have the process decode one image, as `_decode_all` does all; the time counts from the first."""
    number = next(_numbers)
    head = {
        "number": number,
        "header": asdict(image.header),
        "place": image.place,
        "config": config.model_dump(mode="json", exclude_unset=True),  # some keys exclude others
        "shape": out.shape,
        "seconds": seconds,
        "bytes": image.header.weighted_pixels * _PIXEL_BYTES + 2 * len(image.data) + _SPARE_BYTES,
    }
    write_frame(process.requests, head, image.data)
    answer, planes = read_frame(process.answers, out.nbytes)
    # what decodes hostile bytes may have come under their control: nothing that it says is trusted
    if answer.get("number") != number:
        raise ValueError("the answer is that of another image")
    if answer.get("is_out_of_memory") is True:
        return MemoryError()
    problem = answer.get("problem")
    if problem is not None:
        details = {"format": image.header.format}
        return ServiceError(400, "invalid_image", str(problem)[:300], details)
    if len(planes) != out.nbytes:
        raise ValueError(f"{len(planes)} bytes of planes; expected {out.nbytes}")
    width, height = image.size
    if answer.get("size") not in ([width, height], [height, width]):
        raise ValueError(f"the image has become one of {answer.get('size')!r}")
    out[...] = np.frombuffer(planes, out.dtype).reshape(out.shape)
    upright_width, upright_height = answer["size"]
    return upright_width, upright_height


def _too_long(count: int, seconds: float) -> ServiceError:
    what = "the image takes" if count == 1 else f"the {count} images take"
    message = f"{what} more than {seconds:g} s to decode"
    return ServiceError(422, "decoding_too_long", message, {"limit": seconds, "unit": "seconds"})


def _failed() -> ServiceError:
    message = "the process that decodes large images has ended unexpectedly"
    return ServiceError(503, "decoder_failed", message, headers={"Retry-After": "1"})


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    paths = [str(Path(__file__).parents[2]), *(path for path in sys.path if path)]
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


DECODER = Decoder()
"""The one decoder of the server."""
atexit.register(DECODER.close)
