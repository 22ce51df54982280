"""The errors of requests that are refused, or time out."""

from service.errors import ServiceError
from service.repository.load_progress import LoadState


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


def not_ready(state: LoadState) -> ServiceError:
    """Return the error of a request that comes before the models are loaded.

    Args:
        state: load progress.
    """
    details = {"loaded": state.loaded, "models": state.models, "steps": list(state.steps)}
    message = f"the models are not loaded yet ({str(state) or 'the folder of models is being read'})"
    return ServiceError(503, "not_ready", message, details, {"Retry-After": "1"})


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
