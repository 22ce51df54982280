"""The errors of requests that the server does not take, or gives up."""

from service.errors import ServiceError
from service.repository.load_progress import LoadState

REFUSAL_DELAY_SECONDS = 0.1
"""Delay of each 503: limits the CPU time of clients that retry at once, which costs a quarter of a millisecond each."""


def queue_full(waiting: int, running: int, seconds: int, *, gives_way: bool = False) -> ServiceError:
    """Return the error of a request whose model has a full queue.

    Args:
        waiting: requests in the queue.
        running: requests that workers have taken.
        seconds: when the client should try again.
        gives_way: whether the request was in the queue, and its client has most of those that wait.
    """
    reason = ", and this one gave way to a client that has fewer of them" if gives_way else " already"
    return ServiceError(
        503,
        "queue_full",
        f"the workers are busy and {waiting} requests wait{reason}; try again in {seconds} s",
        {"waiting": waiting, "running": running, "retry_after": seconds},
        {"Retry-After": str(seconds)},
    )


def not_ready(state: LoadState) -> ServiceError:
    """Return the error of a request that comes before the models are loaded.

    Args:
        state: how far the loading has come.
    """
    details = {"loaded": state.loaded, "models": state.models, "steps": list(state.steps)}
    message = f"the models are not loaded yet ({str(state) or 'the folder of models is being read'})"
    return ServiceError(503, "not_ready", message, details, {"Retry-After": "1"})


def shutting_down() -> ServiceError:
    """Return the error of a request that arrives while the server shuts down."""
    return ServiceError(
        503,
        "shutting_down",
        "the server is shutting down and takes no more requests",
        headers={"Connection": "close", "Retry-After": "1"},
    )


def timed_out(timeout: float) -> ServiceError:
    """Return the error of a request that was given up after `timeout` seconds."""
    message = f"the request took longer than {timeout:g} s and was stopped"
    return ServiceError(504, "timeout", message, {"timeout": timeout})
