"""Runs requests once more on another version of their model, where that takes nothing away from others."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

from engine import StopSignal
from service.log_context import FIELDS
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import ModelEntry
from service.scheduling.job import Job
from service.scheduling.scheduler import DoneCallback, Scheduler
from service.traffic.model_traffic import ModelTraffic
from service.traffic.shadow_budget import ShadowBudget
from service.traffic.shadow_check import why_not_shadowed
from service.traffic.shadow_job import FindDivergence, ShadowJob
from service.traffic.shadow_statistics import ShadowOutcome

MOST_BYTES = 64 << 20
"""Most bytes of inputs and outputs that are kept for a shadow run; there is never more than one."""
_LOOKS = (0.002, 0.004, 0.008, 0.016, 0.032)
"""Seconds before each look for an idle worker, the first counted from the end of the call."""
_RUN_SECONDS = 30.0
"""How long a shadow run may take."""
_DIVERGENCE_SECONDS = 60.0
"""Between two searches for the operator that diverges first: they take several runs."""

Payload = TypeVar("Payload")
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Plan:
    """What becomes of the calls of a version.

    Attributes:
        traffic: that of its model.
        shadow: the version that they are run on as well.
        tolerance: the largest relative difference of outputs that agree.
        searched: when it was last looked for where the two diverge, on the clock of `time.monotonic`.
    """

    traffic: ModelTraffic
    shadow: ref[LoadedModel]
    tolerance: float
    searched: float = field(default=-_DIVERGENCE_SECONDS)


class Shadows:
    """Makes shadow runs, one at a time, on a thread of its own. Used on the event loop but for `watch`.

    A run begins when its request has been answered, and while fewer than half of the workers have work. Inputs and
    outputs are kept by reference for the moment that this takes, and dropped where there is no room. A run stops before
    its next layer when requests need the last idle worker.

    Args:
        scheduler: sees all calls, and knows how many workers have work.
        worker_count: how many there are.
        find: finds the operator that diverges first.
    """

    def __init__(self, scheduler: Scheduler, worker_count: int, find: FindDivergence) -> None:
        self._scheduler = scheduler
        self._worker_count = worker_count
        self._find = find
        self._plans: WeakKeyDictionary[LoadedModel, _Plan] = WeakKeyDictionary()
        self._budget = ShadowBudget()
        self._task: asyncio.Task[None] | None = None
        self._stop: StopSignal | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shadow")
        self._is_closed = False

    def watch(self, entry: ModelEntry, traffic: ModelTraffic) -> None:
        """Have requests of a model run on its shadow version as well, as far as its `[traffic]` table says.

        Called before the first of these requests, on any thread.
        """
        config, statistics = traffic.config.shadow, traffic.shadow
        if config is None or statistics is None or config.version not in entry.versions:
            return
        shadow = entry.versions[config.version]
        for version, model in entry.versions.items():
            if version == config.version:
                continue
            reason = why_not_shadowed(model, shadow)
            if reason is None:
                self._plans[model] = _Plan(traffic, ref(shadow), config.tolerance)
                self._scheduler.mirror = self.mirror
                continue
            statistics.refusals[version] = reason
            _logger.warning("no shadow runs", extra={FIELDS: {"model": entry.name, "reason": reason}})

    def mirror(
        self, call: Job[Payload], done: DoneCallback[Payload]
    ) -> tuple[Job[Payload], DoneCallback[Payload]]:
        """Return what to submit in place of a call, so that its inputs and outputs are kept if its turn has come.

        Every call of the server comes by here, so that a shadow run makes room for it.
        """
        self._budget.earn()
        if self._stop is not None:
            self._budget.meet()
            if self._scheduler.busy_workers() + 1 >= self._worker_count:
                self._stop.stop("requests need the worker")
        plan = self._plans.get(call.model)
        if plan is None or not plan.traffic.shadow_is_due():
            return call, done
        reason = self._why_not_now()
        if reason is not None:
            plan.traffic.drop_shadow(reason)
            return call, done
        job = ShadowJob(call, plan.tolerance)
        return job.call(), partial(self._end, plan, job, done)

    def close(self) -> None:
        """Stop the run that is in progress, and make no more."""
        self._is_closed = True
        if self._stop is not None:
            self._stop.stop("the server is shutting down")
        self._thread.shutdown(cancel_futures=True)

    def _why_not_now(self) -> ShadowOutcome | None:
        if self._task is not None or self._is_closed:
            return ShadowOutcome.NO_IDLE_WORKER
        return None if self._budget.is_open else ShadowOutcome.SPARED

    def _end(
        self,
        plan: _Plan,
        job: ShadowJob[Payload],
        done: DoneCallback[Payload],
        response: Payload | None,
        error: BaseException | None,
    ) -> None:
        """Have the call answered, and then look for a worker."""
        done(response, error)
        if error is not None:
            return
        reason = self._why_not_now()
        if reason is None and job.inputs is None:
            reason = ShadowOutcome.NOT_COMPARABLE
        if reason is None and job.byte_count > MOST_BYTES:
            reason = ShadowOutcome.TOO_LARGE
        if reason is not None:
            plan.traffic.drop_shadow(reason)
            return
        self._task = asyncio.get_running_loop().create_task(self._run_when_idle(plan, job))

    async def _run_when_idle(self, plan: _Plan, job: ShadowJob[Any]) -> None:
        """Make a run once workers are idle; none after the last look."""
        try:
            for seconds in _LOOKS:
                await asyncio.sleep(seconds)
                if not self._is_closed and self._scheduler.busy_workers() < max(1, self._worker_count // 2):
                    await self._run(plan, job)
                    return
            plan.traffic.drop_shadow(ShadowOutcome.NO_IDLE_WORKER)
        finally:
            self._task = self._stop = None

    async def _run(self, plan: _Plan, job: ShadowJob[Any]) -> None:
        shadow = plan.shadow()
        if shadow is None:  # the model was loaded again meanwhile
            return
        if self._scheduler.busy_workers():
            self._budget.meet()
        now = monotonic()
        searches = now - plan.searched >= _DIVERGENCE_SECONDS
        self._stop = StopSignal(now + _RUN_SECONDS)
        try:
            future = self._thread.submit(job.run, shadow, self._stop, self._find if searches else None)
        except RuntimeError:  # the system has no room for the thread
            plan.traffic.drop_shadow(ShadowOutcome.NO_IDLE_WORKER)
            return
        try:
            run = await asyncio.wrap_future(future)
        except Exception:
            _logger.exception("a shadow run could not be made")
            return
        if run is None:
            plan.traffic.drop_shadow(ShadowOutcome.NO_IDLE_WORKER)
            return
        if searches and run.outcome is ShadowOutcome.DIFFERS:
            plan.searched = monotonic() - (0 if run.divergence is not None else _DIVERGENCE_SECONDS * 0.9)
        plan.traffic.observe_shadow(run)
