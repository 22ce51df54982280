"""The heavy calls of one model: those that workers have left to threads of their own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from service.heavy_work import giving_way, stoppable
from service.repository.loaded_model import LoadedModel
from service.scheduling.execution import resume
from service.scheduling.fair_share import VirtualClock
from service.scheduling.loop_inbox import Inbox
from service.scheduling.model_queue import ModelQueue
from service.scheduling.policy import SchedulingPolicy
from service.scheduling.run_estimate import RunEstimate
from service.scheduling.scheduled_call import ScheduledCall
from service.scheduling.trace_setting import TraceSetting
from service.scheduling.work_item import FormBatch, Leave, WorkItem


class HeavyWorkItem(WorkItem):
    """A heavy call that a worker took out of a queue: it goes on where the call was left, and leaves none.

    What decodes and encodes it stops between two pieces once it is given up.
    """

    __slots__ = ()

    def execute(self, form_batch: FormBatch, leave: Leave, inbox: Inbox) -> None:
        """Decode, run and encode; called by a worker. Raises nothing."""
        with stoppable(self._stop_reason), giving_way():
            super().execute(form_batch, leave, inbox)

    def deliver(self, inbox: Inbox) -> None:
        """Hand the results to the event loop."""
        for scheduled in self.calls:
            self._estimate.observe(scheduled.progress)
        self._runs = self._runs or [[scheduled] for scheduled in self.calls if scheduled.progress.leads_run]
        super().deliver(inbox)

    def _stop_reason(self) -> str | None:
        return next((reason for call in self.calls if (reason := call.stop_reason()) is not None), None)

    def _begin(self, scheduled: ScheduledCall[Any]) -> bool:
        return resume(scheduled)

    def _heavy(self, calls: Sequence[ScheduledCall[Any]]) -> list[ScheduledCall[Any]]:
        del calls
        return []


class HeavyQueue(ModelQueue):
    """Heavy calls of one model that wait, and those that heavy workers have taken; each is run on its own.

    As many may wait as calls of the model may; they take no places from others.

    Args:
        model: the model.
        policy: how its calls are scheduled.
        workers: how many heavy calls may be worked on at the same time.
        clock: the virtual time that all queues of heavy calls share.
        tracing: which runs are sampled.
        estimate: is told how long runs took.
    """

    def __init__(
        self,
        model: LoadedModel,
        policy: SchedulingPolicy,
        workers: int,
        clock: VirtualClock,
        tracing: TraceSetting,
        estimate: RunEstimate,
    ) -> None:
        super().__init__(model, replace(policy, workers=workers, max_batch_size=1), clock, tracing, estimate)

    def _make_work(self, calls: list[ScheduledCall[Any]]) -> WorkItem:
        return HeavyWorkItem(calls, 1, self._tracing.sample, self._estimate)
