"""The threads of routes that compute their responses; anyio, which has them, is imported when they are asked for."""

_ROUTE_THREADS = 2
"""Threads for routes that compute their responses, `/metrics` and `/traces` among them: with more, the event loop would
wait for the interpreter behind each of them."""


def limit_route_threads() -> None:
    """Limit the threads of routes that compute their responses, on the event loop that runs now."""
    from anyio.to_thread import current_default_thread_limiter  # noqa: PLC0415

    current_default_thread_limiter().total_tokens = _ROUTE_THREADS
