"""What one worker does for one model before it looks for other work."""

from collections.abc import Callable, Sequence
from typing import Any

from service.scheduling.delivery import deliver
from service.scheduling.execution import Sampler, decode, run, set_batch_signature
from service.scheduling.scheduled_call import ScheduledCall

FormBatch = Callable[[Sequence[ScheduledCall[Any]]], list[ScheduledCall[Any]]]
"""Takes decoded calls and returns those to be run now, together; the others wait for their own batch."""


class WorkItem:
    """Calls that a worker took out of a queue, until it delivers their results.

    Args:
        calls: calls to be decoded.
        max_batch_size: most items of a run of several calls; 1 where each call is run on its own.
        sample: returns whether the next run is sampled.

    Attributes:
        calls: calls whose results are delivered when the work is done.
    """

    __slots__ = ("_max_batch_size", "_runs", "_sample", "calls")

    def __init__(self, calls: list[ScheduledCall[Any]], max_batch_size: int, sample: Sampler) -> None:
        self.calls = calls
        self._max_batch_size = max_batch_size
        self._sample = sample
        self._runs: Sequence[Sequence[ScheduledCall[Any]]] = ()

    @property
    def is_unwanted(self) -> bool:
        """Whether all its calls have ended, so that nobody waits for what becomes of it; asked on the event loop."""
        return all(scheduled.completion.is_over for scheduled in self.calls)

    def execute(self, form_batch: FormBatch) -> None:
        """Decode, run and encode; called by a worker. Raises nothing.

        Args:
            form_batch: asked for the batch, where calls are run together.
        """
        decoded = [scheduled for scheduled in self.calls if decode(scheduled)]
        if self._max_batch_size > 1:
            decoded = self._exchange(decoded, form_batch)
        if decoded:
            self._runs = run(decoded, self._sample)

    def deliver(self) -> None:
        """Hand the results to the event loop."""
        deliver(self.calls, self._runs)

    def _exchange(self, decoded: list[ScheduledCall[Any]], form_batch: FormBatch) -> list[ScheduledCall[Any]]:
        """Give decoded calls to the batcher, and go on with the batch that it returns."""
        failed = [scheduled for scheduled in self.calls if scheduled.progress.result is not None]
        for scheduled in decoded:
            set_batch_signature(scheduled, self._max_batch_size)
        self.calls = form_batch(decoded)
        deliver(failed)
        return self.calls
