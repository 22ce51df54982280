"""The run of a pipeline: its steps one after the other, each as a job of its own. No worker waits for another one."""

from dataclasses import replace
from http import HTTPStatus
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from engine import PNNX_COMPUTE, Array, RunResult, TraceLevel
from service.codec import Decoded, Options
from service.codec.crops import crop_input
from service.codec.formats.image import bind_images
from service.config.limits import Limits
from service.errors import ServiceError, timed_out
from service.repository.joined_trace import join_steps
from service.repository.loaded_model import Step
from service.scheduling.job import CallStatus, Job, RunOutcome

if TYPE_CHECKING:
    from service.scheduling.scheduler import Scheduler
    from service.tasks.pipeline import Found, Pipeline

_FAILED_RUN = frozenset({"input_mismatch", "layer_failed"})
"""Codes of errors of steps whose model failed on the inputs."""


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
        self._steps = job.model.steps
        self._results: list[RunResult] = []
        """What the steps computed so far; empty outputs of one that had nothing to run on."""
        self._found: list[Found] = []
        """Their predictions, where a later step takes crops of them."""
        self._refusal: ServiceError | None = None
        """Why the request itself cannot be decoded."""

    def begin_step(self) -> None:
        """Queue the next step that has something to run on; the steps have ended where there is none.

        Raises:
            ServiceError: its queue is full, or the server shuts down.
        """
        while len(self._results) < len(self._steps) and self._has_no_crops:
            self._keep(RunResult(_empty_outputs(self._steps[len(self._results)])), ())
        if len(self._results) == len(self._steps):
            self._end()
            return
        job, step = self._job, self._steps[len(self._results)]
        made = Job[None](
            model=step.model,
            protocol=job.protocol,
            request_id=job.request_id,
            decode=self._decode,
            encode=self._encode,
            received_ns=perf_counter_ns() if self._results else job.received_ns,
            timeout=max(0.0, job.deadline - monotonic()),
            priority=job.priority,
            client=job.client,
            is_step=True,
        )
        try:
            job.step = self._scheduler.submit(made, self._end_step)
        except ServiceError as error:
            raise name_step(step.config.name, error) from error

    @property
    def _has_no_crops(self) -> bool:
        source = self._steps[len(self._results)].config.crops
        return source is not None and not any(self._found[self._task.config.places[source]])

    def _keep(self, result: RunResult, found: "Found") -> None:
        self._results.append(result)
        self._found.append(found)

    # on the event loop

    def _end_step(self, _: None, error: BaseException | None) -> None:
        job, step = self._job, self._job.step
        job.step = None
        if step is None or job.is_over:
            return
        times, last = job.timestamps, step.timestamps
        if not times.forward_start:  # the first step's start and the last one's end are those of the pipeline
            times.decode_start, times.decode_end = last.decode_start, last.decode_end
            times.forward_start = last.forward_start
        times.forward_end = last.forward_end or times.forward_end
        job.worker = step.worker
        if isinstance(error, ServiceError) and error is not self._refusal:
            if error.status == HTTPStatus.GATEWAY_TIMEOUT:
                error = timed_out(job.timeout or 0.0)
            error = name_step(self._steps[len(self._results)].config.name, error)
        if error is None:
            try:
                self.begin_step()
            except Exception as failure:  # whoever waits for the pipeline has to get a response
                error = failure
        if error is not None:
            self._scheduler.end_steps(job, error)

    def _end(self) -> None:
        """Join what the steps computed to the outcome of one run."""
        job, names = self._job, [step.config.name for step in self._steps]
        named = list(zip(names, self._results, strict=True))
        traces = {name: result.trace for name, result in named if result.trace is not None}
        job.trace = join_steps(traces) if traces else None
        captured = {f"{name}/{key}": value for name, done in named for key, value in done.captured.items()}
        captured_by = {f"{name}/{key}": by for name, done in named for key, by in done.captured_by.items()}
        outputs = [array for done in self._results for array in done.outputs]
        shown = job.trace if job.trace_level else None
        job.leads_run, job.batch_size, job.decoded = True, job.rows, None
        result = RunResult(outputs, shown, captured, captured_by)
        job.outcome = RunOutcome(result, job.timestamps, job.rows, job.is_observed)
        self._scheduler.end_steps(job, None)

    # on the worker of a step

    def _decode(self) -> Decoded:
        """Return what the next step runs on."""
        step = self._steps[len(self._results)]
        if not self._results:
            return self._decode_request(step)
        decoded = self._decoded
        config, graph = step.config, step.model.graph
        inputs: dict[str, Array] = {}
        if config.tensors is not None:
            for port in graph.inputs:
                place, index = self._task.find_output(config.tensors[port.operator])
                inputs[port.operand] = self._results[place].outputs[index]
        elif config.crops is not None:
            inputs[graph.inputs[0].operand] = self._crops(step, config.crops)
        else:
            pictures = [(graph.inputs[0].operator, picture.data) for picture in decoded.pictures]
            is_dynamic = step.model.batching.max_batch_size > 1
            bound = bind_images(
                pictures, graph.inputs, step.model.config, self._limits, dynamic_batch=is_dynamic
            )
            inputs |= bound.inputs
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
        return replace(decoded, options=self._options(step))

    def _encode(self, outcome: RunOutcome) -> None:
        """Keep what a step computed."""
        place, images = len(self._results), [picture.geometry for picture in self._decoded.pictures]
        name, found = self._steps[place].config.name, None
        if any(name in (step.config.crops, step.config.upright) for step in self._steps):
            parameters = self._decoded.options.task
            found = self._task.predict_step(place, outcome.result.outputs, images, parameters)
        self._keep(outcome.result, found or ())

    @property
    def _decoded(self) -> Decoded:
        if self._job.decoded is None:
            raise RuntimeError("the request is not decoded")
        return self._job.decoded

    def _options(self, step: Step) -> Options:
        """Return the options of a step: the trace of the request, and the operands to capture that are the step's."""
        level = max(self._job.trace_level, TraceLevel.ON) if self._is_sampled else self._job.trace_level
        prefix, names = f"{step.config.name}/", self._decoded.options.capture or ()
        own = tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))
        return Options(trace=level, capture=own)

    def _crops(self, step: Step, source: str) -> Array:
        found: list[list[Any]] = [list(item) for item in self._found[self._task.config.places[source]]]
        parts = [[np.reshape(getattr(one, "corners", one.box), (-1, 2)) for one in item] for item in found]
        image, first = step.model.config.image, self._job.model.config.image
        if image is None or first is None:
            raise RuntimeError("a step on crops has a model that takes no pictures")
        (port,) = step.model.graph.inputs
        placed = list(zip(self._decoded.pictures, parts, strict=True))
        rotations = self._task.rotations(self._found)
        return crop_input(placed, rotations, step.config.margin, port, image, first, self._limits)


def name_step(name: str, error: ServiceError) -> ServiceError:
    """Return the error of a step, which names it."""
    message, details = f"step {name!r}: {error.message}", {**error.details, "step": name}
    return ServiceError(error.status, error.code, message, details, error.headers)


def step_status(error: BaseException) -> CallStatus:
    """Return how a pipeline ended whose step ended with an error."""
    if not isinstance(error, ServiceError) or error.code in _FAILED_RUN:
        return CallStatus.BACKEND
    if error.status == HTTPStatus.GATEWAY_TIMEOUT:
        return CallStatus.CANCELED
    return CallStatus.REJECTED if error.status == HTTPStatus.SERVICE_UNAVAILABLE else CallStatus.OTHER


def _empty_outputs(step: Step) -> list[Array]:
    """Return the outputs of a step for no rows."""
    return [
        np.empty((0, *(dim or 0 for dim in (port.shape or ())[1:])), PNNX_COMPUTE[port.dtype or "f32"])
        for port in step.model.graph.outputs
    ]
