"""Errors of the service; clients see `{"error": "one sentence", "code": "machine_readable", "details": {…}}`."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from engine import Array, InputError, LayerError, Port


class ListenError(Exception):
    """The address cannot be listened on; the message is one sentence, which names the setting to change."""


class ServiceError(Exception):
    """A request that cannot be served as asked.

    Attributes:
        status: HTTP status.
        code: machine-readable name of the error, `snake_case`.
        message: one sentence for people.
        details: values that a program may need to react.
        headers: HTTP headers of the response, e.g. `Retry-After`.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = dict(details or {})
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        return {"error": self.message, "code": self.code, "details": self.details}


def shown(value: object) -> str:
    """Return a value for a message, shortened to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'NAME'?" with the nearest of the known names, whatever its case; "" if none is near."""
    names = {one.lower(): one for one in known}
    nearest = get_close_matches(name[:80].lower(), names, n=1)
    return f"; did you mean {names[nearest[0]]!r}?" if nearest else ""


def clipped(text: str, limit: int = 4096) -> str:
    """Return a text, shortened to a number of characters where it has more: clients and files may have any."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def out_of_memory(message: str = "the server has too little memory for the request") -> ServiceError:
    """Return the error to respond with when memory for a request cannot be had."""
    return ServiceError(503, "out_of_memory", message, headers={"Retry-After": "1"})


def queue_full(waiting: int, running: int, seconds: int, *, is_evicted: bool = False) -> ServiceError:
    """Return the error of a request whose model has a full queue.

    Args:
        waiting: queued requests.
        running: requests that workers have taken.
        seconds: when to retry.
        is_evicted: whether it was in the queue, for one of a client with fewer requests.
    """
    evicted = "; this one was evicted for a client with fewer" if is_evicted else ""
    return ServiceError(
        503,
        "queue_full",
        f"the queue is full ({waiting} requests waiting, {running} running{evicted}); retry in {seconds} s",
        {"waiting": waiting, "running": running, "retry_after": seconds},
        {"Retry-After": str(seconds)},
    )


def shutting_down() -> ServiceError:
    """Return the error of a request that arrives while the server shuts down."""
    headers = {"Connection": "close", "Retry-After": "1"}
    return ServiceError(
        503, "shutting_down", "the server is shutting down; retry on another one", headers=headers
    )


def timed_out(timeout: float) -> ServiceError:
    """Return the error of a request that took longer than its timeout in seconds."""
    return ServiceError(
        504, "timeout", f"the request exceeded its timeout of {timeout:g} s", {"timeout": timeout}
    )


def engine_error(
    error: InputError | LayerError, ports: Sequence[Port] = (), inputs: Mapping[str, Array] | None = None
) -> ServiceError:
    """Return the error to respond with when a model does not run on the arrays of a request.

    Models may run on other shapes than they declare, so only a run shows. The error names the first input whose shape
    is not the declared one: where inside the model it did not fit says little to those who sent it.

    Args:
        error: what the engine raised.
        ports: the graph's inputs.
        inputs: operand name -> array; None where the run had none yet.
    """
    if isinstance(error.__cause__, MemoryError):
        return out_of_memory(str(error))
    code = "input_mismatch" if isinstance(error, InputError) else "layer_failed"
    for port in ports:
        array = (inputs or {}).get(port.operand)
        if array is None or port.shape is None or _fits(array.shape, port.shape):
            continue
        shape = list(array.shape)
        place = f"input {port.operator} has shape {shape}"
        message = f"{place}, on which the model does not run; it declares {port}: {error}"
        details = {"name": port.operator, "shape": shape, "expected": list(port.shape)}
        return ServiceError(422, code, message, details)
    return ServiceError(422, code, str(error))


def as_service_error(error: Exception) -> ServiceError | None:
    """Return the error to respond with when a request ended in an exception; None for a fault of the server."""
    match error:
        case ServiceError():
            return error
        case InputError() | LayerError():
            return engine_error(error)
        case MemoryError():
            return out_of_memory()
    return None


def _fits(shape: Sequence[int], declared: Sequence[int | None]) -> bool:
    return len(shape) == len(declared) and all(
        expected in (None, dim) for dim, expected in zip(shape, declared, strict=True)
    )


def without_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error that explains itself, and of those that led to it.

    Their frames hold what was decoded, and the call that keeps the error: the body of a refused request would lie in
    memory until the garbage collector looks for cycles, which a server hardly ever has it do.
    """
    chain: list[BaseException] = [error]
    for following in chain:
        following.__traceback__ = None
        led_to_it = (following.__cause__, following.__context__)
        chain += [other for other in led_to_it if other is not None and other not in chain]
