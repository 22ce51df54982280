"""The run of a pipeline: its steps one after the other, each as a job of its own. No worker waits for another one."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from starlette.requests import ClientDisconnect

from engine import PNNX_COMPUTE, Array, RunResult, TraceLevel
from service.codec import Decoded, Options, Picture
from service.codec.crops import crop_input
from service.codec.formats.image import bind_images
from service.config.limits import Limits
from service.errors import ServiceError, timed_out
from service.repository.joined_trace import join_steps
from service.repository.loaded_model import Step
from service.scheduling.job import CallStatus, Job, Timestamps

if TYPE_CHECKING:
    from service.scheduling.scheduler import Scheduler
    from service.tasks.pipeline import Found, Pipeline


class PipelineRun:
    """Runs the steps of a pipeline's job; all but decoding and encoding happens on the event loop.

    The first step decodes the request. Each step has the deadline, the priority and the client of the request.

    Args:
        scheduler: queues the jobs of steps, and goes on with the pipeline's when they have ended.
        job: the pipeline's job.
        limits: upper bounds on the size of a request.
        is_sampled: whether the run is traced although the client may not have asked for it.
    """

    def __init__(self, scheduler: "Scheduler", job: Job[Any], limits: Limits, is_sampled: bool) -> None:
        self._scheduler = scheduler
        self._job = job
        self._limits = limits
        self._is_sampled = is_sampled
        self._task = cast("Pipeline", job.model.task)
        self._results: dict[str, RunResult] = {}
        """What each step computed so far; empty outputs of one that had nothing to run on."""
        self._found: dict[str, Found] = {}
        """The predictions of each step of which a later one takes crops, or their directions."""
        self._pictures: Sequence[Picture] = ()
        self._asked = Options()
        """Pictures and options of the request."""
        self._refusal: ServiceError | None = None
        """Why the request itself cannot be decoded."""
        self._status = CallStatus.OTHER
        """How the latest step ended."""

    async def run(self) -> None:
        """Run the steps, and have the job ready to be encoded; where one fails, it ends like that."""
        job = self._job
        try:
            for step in job.model.steps:
                source = step.config.crops
                if source is None or any(self._found[source]):
                    await self._run_step(step)
                else:  # no crops: no rows
                    shapes = [
                        (0, *(dim or 0 for dim in (port.shape or ())[1:]))
                        for port in step.model.graph.outputs
                    ]
                    dtypes = [PNNX_COMPUTE[port.dtype or "f32"] for port in step.model.graph.outputs]
                    self._results[step.config.name] = RunResult(list(map(np.empty, shapes, dtypes)))
            self._join()
        except Exception as error:
            self._scheduler.end(job, self._status, error=error)

    # on the event loop

    async def _run_step(self, step: Step) -> None:
        job, scheduler = self._job, self._scheduler
        made = Job[None](
            model=step.model,
            protocol=job.protocol,
            request_id=job.request_id,
            decode=partial(self._decode, step),
            encode=partial(self._encode, step),
            timestamps=Timestamps(perf_counter_ns() if self._results else job.timestamps.received),
            timeout=max(0.0, job.deadline - monotonic()),
            priority=job.priority,
            client=job.client,
            is_step=True,
        )
        job.stop_with(lambda reason: scheduler.cancel(made, reason, ClientDisconnect()))
        try:
            await scheduler.run(made)
        except ServiceError as error:
            is_late = error.status == HTTPStatus.GATEWAY_TIMEOUT
            if error is self._refusal:
                raise
            raise name_step(step.config.name, timed_out(job.timeout or 0.0) if is_late else error) from error
        finally:
            job.on_cancel = None
            self._status = made.status if made.is_over else CallStatus.OTHER
            times, last = job.timestamps, made.timestamps
            # the first step's start and the last one's end are those of the pipeline
            if not times.forward_start:
                times.decode_start, times.decode_end = last.decode_start, last.decode_end
                times.forward_start = last.forward_start
            times.forward_end = last.forward_end or times.forward_end
            job.worker = made.worker

    def _join(self) -> None:
        """Join what the steps computed to the result of one run."""
        job, named = self._job, self._results.items()
        traces = {name: result.trace for name, result in named if result.trace is not None}
        job.trace = join_steps(traces) if traces else None
        captured = {f"{name}/{key}": value for name, done in named for key, value in done.captured.items()}
        captured_by = {f"{name}/{key}": by for name, done in named for key, by in done.captured_by.items()}
        outputs = [array for done in self._results.values() for array in done.outputs]
        job.leads_run, job.batch_size, job.decoded = True, job.rows, None
        job.result = RunResult(outputs, job.trace if job.trace_level else None, captured, captured_by)

    # on the worker of a step

    def _decode(self, step: Step) -> Decoded:
        """Return what a step runs on."""
        if not self._results:
            return self._decode_request(step)
        config, ports = step.config, step.model.graph.inputs
        inputs: dict[str, Array] = {}
        if config.tensors is not None:
            for port in ports:
                source, place = self._task.outputs[config.tensors[port.operator]]
                inputs[port.operand] = self._results[source].outputs[place]
        elif config.crops is not None:
            inputs[ports[0].operand] = self._crops(step, self._found[config.crops])
        else:
            pictures = [("", picture.data) for picture in self._pictures]
            is_dynamic = step.model.batching.max_batch_size > 1
            bound = bind_images(pictures, ports, step.model.config, self._limits, dynamic_batch=is_dynamic)
            inputs = bound.inputs
        return Decoded(inputs, self._options(step))

    def _decode_request(self, step: Step) -> Decoded:
        job = self._job
        try:
            decoded = job.decode()
        except ServiceError as error:
            self._refusal = error
            raise
        if self._task.needs_picture and not decoded.pictures:
            message = f"the pipeline {job.model.name!r} takes a picture; send one, not a tensor"
            self._refusal = ServiceError(422, "no_picture", message, {"model": job.model.name})
            raise self._refusal
        job.take_decoded(decoded)
        self._pictures, self._asked = decoded.pictures, decoded.options
        return replace(decoded, options=self._options(step))

    def _encode(self, step: Step, result: RunResult) -> None:
        """Keep what a step computed."""
        name = step.config.name
        if any(name in (other.config.crops, other.config.upright) for other in self._job.model.steps):
            images = [picture.geometry for picture in self._pictures]
            found = self._task.predict_step(name, result.outputs, images, self._asked.task)
            self._found[name] = found or ()
        self._results[name] = result

    def _options(self, step: Step) -> Options:
        """Return the options of a step: the trace of the request, and the operands to capture that are the step's."""
        level = max(self._job.trace_level, TraceLevel.ON) if self._is_sampled else self._job.trace_level
        prefix, names = f"{step.config.name}/", self._asked.capture or ()
        own = tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))
        return Options(trace=level, capture=own)

    def _crops(self, step: Step, found: Sequence[Sequence[Any]]) -> Array:
        parts = [[np.reshape(getattr(one, "corners", one.box), (-1, 2)) for one in item] for item in found]
        image, first, config = step.model.config.image, self._job.model.config.image, step.config
        if image is None or first is None:
            raise RuntimeError("a step on crops has a model that takes no pictures")
        (port,) = step.model.graph.inputs
        placed = list(zip(self._pictures, parts, strict=True))
        rotations = self._task.rotations(self._found[config.upright]) if config.upright else ()
        return crop_input(placed, rotations, config.margin, port, image, first, self._limits)


def name_step(name: str, error: ServiceError) -> ServiceError:
    """Return the error of a step, which names it."""
    message, details = f"step {name!r}: {error.message}", {**error.details, "step": name}
    return ServiceError(error.status, error.code, message, details, error.headers)
