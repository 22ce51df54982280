"""Runs requests once more on another version of their model, where that takes nothing away from others."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic, perf_counter, time
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from engine import Array, KuiperError, RunResult, RunStoppedError, StopSignal, TraceLevel
from service.codec import Decoded
from service.codec.json_text import json_number
from service.errors import ServiceError
from service.log_context import FIELDS
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import ModelEntry
from service.repository.rows import count_rows, run_rows
from service.repository.traffic_schemas import DivergenceView, ShadowRunView
from service.scheduling.job import Job
from service.scheduling.scheduler import Scheduler
from service.traffic.model_traffic import ModelTraffic
from service.traffic.output_difference import compare_outputs, count_other_labels
from service.traffic.shadow_check import why_not_shadowed
from service.traffic.shadow_statistics import ShadowOutcome, ShadowStatistics

MAX_BYTES = 64 << 20
"""Maximum bytes of inputs and outputs that are kept for a shadow run; there is never more than one."""
_LOOKS = (0.002, 0.004, 0.008, 0.016, 0.032)
"""Seconds before each look for an idle worker, the first counted from the end of the call."""
_RUN_SECONDS = 30.0
"""How long a shadow run may take."""
_DIVERGENCE_SECONDS = 60.0
"""Between two searches for the operator that diverges first: they take several runs."""
_EARNED, _MAX_SAVED = 1 / 200, 8.0
"""Requests that may be in progress during a shadow run: how many each request allows, and the most that are saved up.

A shadow run takes memory bandwidth, caches, the other half of a core, and time of the GIL. With one request in
200 the 99th percentile of latency hardly knows of them. What meets no request costs nothing, so that a server with
pauses makes all the runs that are asked for.
"""

Stop = Callable[[], str | None]
"""Returns why a run is to end, None while it may go on."""
FindDivergence = Callable[[LoadedModel, LoadedModel, Mapping[str, Array], float, Stop], DivergenceView | None]
"""(version, other version, inputs, tolerance, stop) -> where the two diverge first."""

Payload = TypeVar("Payload")
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Plan:
    """What becomes of the calls of a version.

    Attributes:
        statistics: of the shadow runs of its model.
        shadow: the version that they are run on as well.
        tolerance: the largest relative difference of outputs that agree.
        searched: when it was last looked for where the two diverge, on the clock of `time.monotonic`.
    """

    statistics: ShadowStatistics
    shadow: ref[LoadedModel]
    tolerance: float
    searched: float = -_DIVERGENCE_SECONDS


class _ShadowJob(Generic[Payload]):
    """A call whose inputs and outputs are held, by reference, from its decoding until its shadow run.

    Args:
        call: the call, whose decoding and encoding are noted from now on.
        tolerance: the largest relative difference of outputs that agree.

    Attributes:
        inputs: operand name -> array; None where its run cannot be compared, or before it is decoded.
    """

    def __init__(self, call: Job[Payload], tolerance: float) -> None:
        # not the call itself, which refers to this from now on
        self._model, self._request_id, self._timestamps = call.model, call.request_id, call.timestamps
        self._decode_call, self._encode_call = call.decode, call.encode
        call.decode, call.encode = self._decode, self._encode
        self._tolerance = tolerance
        self.inputs: Mapping[str, Array] | None = None
        self._outputs: Sequence[Array] = ()

    @property
    def byte_count(self) -> int:
        """Bytes of all that is held."""
        inputs = () if self.inputs is None else self.inputs.values()
        return sum(array.nbytes for array in (*inputs, *self._outputs))

    def run(self, shadow: LoadedModel, stop: StopSignal, find: FindDivergence | None) -> ShadowRunView | None:
        """Run the shadow version; returns the result, None where it was stopped.

        Args:
            shadow: the version that is run.
            stop: ends the run early.
            find: finds the operator that diverges first; None: it is not searched for.
        """
        given, times = self.inputs or {}, self._timestamps
        ports = zip(self._model.graph.inputs, shadow.graph.inputs, strict=True)
        inputs = {other.operand: given[port.operand] for port, other in ports}
        found: dict[str, Any] = dict.fromkeys(("max_abs", "max_rel", "divergence", "error")) | {"labels": 0}
        began = perf_counter()
        try:
            result = run_rows(shadow, inputs, count_rows(inputs), trace=TraceLevel.OFF, stop=stop)
        except RunStoppedError:
            return None
        except (KuiperError, MemoryError) as error:
            seconds = perf_counter() - began
            found |= {"outcome": ShadowOutcome.FAILED.value, "error": str(error) or "no memory"}
        else:
            seconds = perf_counter() - began
            # a search by operand names takes equal names of the inputs
            search = None if inputs.keys() != given.keys() else find
            found |= self._compare(shadow, result.outputs, stop, search)
        return ShadowRunView.model_validate(
            {
                "request_id": self._request_id,
                "version": self._model.version,
                "shadow": shadow.version,
                "run_ms": round((times.forward_end - times.forward_start) / 1e6, 4),
                "shadow_ms": round(seconds * 1e3, 4),
                "at_ms": round(time() * 1e3, 3),
                **found,
            }
        )

    def _compare(
        self, shadow: LoadedModel, outputs: Sequence[Array], stop: StopSignal, find: FindDivergence | None
    ) -> dict[str, Any]:
        """Return the fields of a `ShadowRunView` that say how the outputs differ."""
        model, divergence, labels = self._model, None, 0
        absolute, relative = compare_outputs(self._outputs, outputs)
        if absolute:
            with suppress(ServiceError):
                labels = count_other_labels(model, self._outputs, shadow, outputs)
        differs = relative > self._tolerance
        if differs and find is not None:
            with suppress(KuiperError, ServiceError, MemoryError):  # stopped, or too large to be looked at
                divergence = find(model, shadow, self.inputs or {}, self._tolerance, stop)
        return {
            "outcome": (ShadowOutcome.DIFFERS if differs else ShadowOutcome.AGREES).value,
            "max_abs": json_number(absolute),
            "max_rel": json_number(relative),
            "labels": labels,
            "divergence": divergence,
        }

    def _decode(self) -> Decoded:
        decoded = self._decode_call()
        if not decoded.options.is_observed:
            self.inputs = decoded.inputs
        return decoded

    def _encode(self, result: RunResult) -> Payload:
        response = self._encode_call(result)
        self._outputs = result.outputs
        return response


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
        self._saved = _MAX_SAVED
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
                self._plans[model] = _Plan(statistics, ref(shadow), config.tolerance)
                self._scheduler.mirror = self.mirror
                continue
            statistics.refusals[version] = reason
            _logger.warning("no shadow runs", extra={FIELDS: {"model": entry.name, "reason": reason}})

    def mirror(self, call: Job[Payload], future: asyncio.Future[Payload]) -> None:
        """Have the inputs and outputs of a call kept, if its turn has come, until its future has the response.

        Every call of the server comes by here, so that a shadow run makes room for it.
        """
        self._saved = min(self._saved + _EARNED, _MAX_SAVED)
        if self._stop is not None:
            self._saved -= 1
            if self._scheduler.busy_workers() + 1 >= self._worker_count:
                self._stop.stop("requests need the worker")
        plan = self._plans.get(call.model)
        if plan is None or not plan.statistics.is_due():
            return
        reason = self._why_not_now()
        if reason is not None:
            plan.statistics.outcomes[reason] += 1
            return
        future.add_done_callback(partial(self._end, plan, _ShadowJob(call, plan.tolerance)))

    def close(self) -> None:
        """Stop the run that is in progress, and make no more."""
        self._is_closed = True
        if self._stop is not None:
            self._stop.stop("the server is shutting down")
        self._thread.shutdown(cancel_futures=True)

    def _why_not_now(self) -> ShadowOutcome | None:
        if self._task is not None or self._is_closed:
            return ShadowOutcome.NO_IDLE_WORKER
        return None if self._saved >= 1 else ShadowOutcome.SPARED

    def _end(self, plan: _Plan, job: _ShadowJob[Payload], future: asyncio.Future[Payload]) -> None:
        """Look for a worker, now that the call has its response."""
        if future.cancelled() or future.exception() is not None:
            return
        reason = self._why_not_now()
        if reason is None and job.inputs is None:
            reason = ShadowOutcome.NOT_COMPARABLE
        if reason is None and job.byte_count > MAX_BYTES:
            reason = ShadowOutcome.TOO_LARGE
        if reason is not None:
            plan.statistics.outcomes[reason] += 1
            return
        self._task = asyncio.get_running_loop().create_task(self._run_when_idle(plan, job))

    async def _run_when_idle(self, plan: _Plan, job: _ShadowJob[Any]) -> None:
        """Make a run once workers are idle; none after the last look."""
        try:
            for seconds in _LOOKS:
                await asyncio.sleep(seconds)
                if not self._is_closed and self._scheduler.busy_workers() < max(1, self._worker_count // 2):
                    await self._run(plan, job)
                    return
            plan.statistics.outcomes[ShadowOutcome.NO_IDLE_WORKER] += 1
        finally:
            self._task = self._stop = None

    async def _run(self, plan: _Plan, job: _ShadowJob[Any]) -> None:
        shadow = plan.shadow()
        if shadow is None:  # the model was loaded again meanwhile
            return
        if self._scheduler.busy_workers():
            self._saved -= 1
        now = monotonic()
        searches = now - plan.searched >= _DIVERGENCE_SECONDS
        self._stop = StopSignal(now + _RUN_SECONDS)
        try:
            future = self._thread.submit(job.run, shadow, self._stop, self._find if searches else None)
        except RuntimeError:  # the system has no room for the thread
            plan.statistics.outcomes[ShadowOutcome.NO_IDLE_WORKER] += 1
            return
        try:
            run = await asyncio.wrap_future(future)
        except Exception:
            _logger.exception("a shadow run could not be made")
            return
        if run is None:
            plan.statistics.outcomes[ShadowOutcome.NO_IDLE_WORKER] += 1
            return
        if searches and run.outcome == ShadowOutcome.DIFFERS:
            plan.searched = monotonic() - (0 if run.divergence is not None else _DIVERGENCE_SECONDS * 0.9)
        plan.statistics.observe(run)
