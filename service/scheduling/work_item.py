"""What one worker does for one model before it looks for other work."""

from collections.abc import Callable, Sequence
from typing import Any

from service.scheduling.delivery import deliver
from service.scheduling.execution import Sampler, decode, run, set_batch_signature
from service.scheduling.loop_inbox import Inbox
from service.scheduling.run_estimate import RunEstimate
from service.scheduling.scheduled_call import ScheduledCall

FormBatch = Callable[[Sequence[ScheduledCall[Any]]], list[ScheduledCall[Any]]]
"""Takes decoded calls and returns those to be run now, together; the others wait for their own batch."""
Leave = Callable[[ScheduledCall[Any]], None]
"""Takes a heavy call, which others go on with."""


class WorkItem:
    """Calls that a worker took out of a queue, until it delivers their results.

    Args:
        calls: calls to be decoded.
        max_batch_size: most items of a run of several calls; 1 where each call is run on its own.
        sample: returns whether the next run is sampled.
        estimate: tells which runs are heavy.

    Attributes:
        calls: calls whose results are delivered when the work is done, unless they are left to others.
    """

    __slots__ = ("_estimate", "_left", "_max_batch_size", "_runs", "_sample", "calls")

    def __init__(
        self, calls: list[ScheduledCall[Any]], max_batch_size: int, sample: Sampler, estimate: RunEstimate
    ) -> None:
        self.calls = calls
        self._max_batch_size = max_batch_size
        self._sample = sample
        self._estimate = estimate
        self._runs: Sequence[Sequence[ScheduledCall[Any]]] = ()
        self._left: list[ScheduledCall[Any]] = []

    @property
    def is_unwanted(self) -> bool:
        """Whether its calls have ended, but for those that others go on with: nobody waits for what becomes of it.

        Asked on the event loop.
        """
        return all(scheduled.completion.is_over or scheduled in self._left for scheduled in self.calls)

    def execute(self, form_batch: FormBatch, leave: Leave, inbox: Inbox) -> None:
        """Decode, run and encode; called by a worker. Raises nothing.

        Args:
            form_batch: asked for the batch, where calls are run together.
            leave: takes the calls that are heavy.
            inbox: the event loop's, for calls that end before there is a batch.
        """
        decoded = []
        for scheduled in self.calls:
            if self._begin(scheduled):
                decoded.append(scheduled)
            elif self._heavy([scheduled]):  # at once: to decode the next one may take long
                self._left.append(scheduled)
                leave(scheduled)
        if self._max_batch_size > 1:
            decoded = self._exchange(decoded, form_batch, inbox)
        if decoded:
            self._runs = run(decoded, self._sample)
            for scheduled in self._heavy(decoded):
                self._leave_encoding(scheduled, leave)

    def deliver(self, inbox: Inbox) -> None:
        """Hand the results to the event loop."""
        calls = self.calls
        if self._left:
            calls = [scheduled for scheduled in calls if scheduled not in self._left]
        deliver(inbox, calls, self._runs)

    def _begin(self, scheduled: ScheduledCall[Any]) -> bool:
        """Decode a call; returns whether it is to be run now."""
        if not decode(scheduled):
            return False
        scheduled.progress.is_heavy = self._estimate.is_heavy(scheduled.progress)
        return not scheduled.progress.is_heavy

    def _heavy(self, calls: Sequence[ScheduledCall[Any]]) -> list[ScheduledCall[Any]]:
        """Return the calls among some that are to be left to others."""
        return [scheduled for scheduled in calls if scheduled.progress.is_heavy]

    def _leave_encoding(self, scheduled: ScheduledCall[Any], leave: Leave) -> None:
        """Leave a call that was run; the first of those that are left counts their run if none of it remains."""
        runs = []
        for members in self._runs:
            rest = [other for other in members if other is not scheduled]
            scheduled.progress.leads_run |= not rest and bool(members)
            runs.append(rest)
        self._runs = runs
        self._left.append(scheduled)
        leave(scheduled)

    def _exchange(
        self, decoded: list[ScheduledCall[Any]], form_batch: FormBatch, inbox: Inbox
    ) -> list[ScheduledCall[Any]]:
        """Give decoded calls to the batcher, and go on with the batch that it returns."""
        kept = [scheduled for scheduled in self.calls if scheduled not in self._left]
        failed = [scheduled for scheduled in kept if scheduled.progress.result is not None]
        for scheduled in decoded:
            set_batch_signature(scheduled, self._max_batch_size)
        self.calls = form_batch(decoded)
        deliver(inbox, failed)
        return self.calls
