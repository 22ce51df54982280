"""Fits the settings that bound memory to the memory there is, and reports what was taken from where."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Final

from service.config.limits import Limits
from service.config.machine import Machine
from service.config.settings import Settings

MEMORY_SHARES: Final = {
    "max_body_bytes": Fraction(1, 16),
    "max_buffered_bytes": Fraction(1, 8),
}
"""Setting -> how much of the memory for requests, in bytes, its default is at most, in its own unit."""
_LIMIT_SHARES: Final = {
    "json_bytes": Fraction(1, 64),  # up to 24 bytes each, once parsed
    "image_pixels": Fraction(1, 16),  # three bytes each, once decoded
    "tensor_elements": Fraction(1, 64),  # eight bytes each
    "response_bytes": Fraction(1, 16),  # its arrays take as much again
}
"""The same of the bounds that are no settings."""
_RUNS: Final = Fraction(3, 4)
"""How much of the memory for requests the tensors of one run for each worker may take together: all but what bodies and
unsent responses take."""
_REST_BYTES: Final = 256 << 20
"""What the process takes without any request. All else is for requests, or a quarter where that is more."""
_WORKER_BYTES: Final = 256 << 20
"""Memory for each worker: of those that the CPUs would allow, no more are started by default."""
_LEAST: Final = 1 << 20
"""No default becomes less, however little memory there is."""


def fit_to_memory(settings: Settings, memory: int | None) -> Settings:
    """Return settings whose defaults fit the memory; what was set stays as it is.

    Args:
        settings: the settings as read.
        memory: bytes that the process may use; None where that is not known.
    """
    if memory is None:
        return settings
    workers = settings.workers or max(1, min(settings.worker_count, memory // _WORKER_BYTES))
    shares = MEMORY_SHARES | {"max_run_bytes": _RUNS / workers}
    for_requests = max(memory - _REST_BYTES, memory // 4)

    def fit(default: int, share: Fraction) -> int:
        return min(default, max(_LEAST, int(for_requests * share)))

    fitted = {
        name: fit(getattr(settings, name), share)
        for name, share in shares.items()
        if name not in settings.model_fields_set
    }
    if "max_buffered_bytes" in fitted:  # there has to be room for the largest body
        largest = min(fitted.get("max_body_bytes", settings.max_body_bytes), settings.max_buffered_bytes)
        fitted["max_buffered_bytes"] = max(fitted["max_buffered_bytes"], largest)
    defaults = Limits()
    limits = {name: fit(getattr(defaults, name), share) for name, share in _LIMIT_SHARES.items()}
    if workers < settings.worker_count:
        fitted["workers"] = workers
    return settings.with_limits(replace(defaults, **limits), fitted)


def describe_fit(settings: Settings, machine: Machine) -> Iterator[str]:
    """Yield lines that say how many workers there are, which limits are not at their defaults, and why.

    Args:
        settings: as `fit_to_memory` returned them.
        machine: what the process may use.
    """
    workers = _count(settings.worker_count, "worker")
    threads = _count(settings.thread_count, "thread")
    yield f"{workers} of {threads} on {_count(machine.cpus, 'CPU')}: {machine.cpus_from}"
    if machine.memory is None:
        return
    fields = type(settings).model_fields
    changed = [
        f"{name} {getattr(settings, name)}"
        for name in ("workers", *MEMORY_SHARES, "max_run_bytes")
        if getattr(settings, name) != fields[name].default
    ]
    limits = ", ".join(changed) or "limits as by default"
    yield f"{machine.memory >> 20} MiB of memory: {machine.memory_from}; {limits}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
