"""One run for several calls."""

from collections.abc import Callable, Sequence
from typing import Any

from engine import RunResult, RunStoppedError, TraceLevel
from service.scheduling.call import Ending
from service.scheduling.job import Job
from service.scheduling.rows import join, split
from service.scheduling.shared_stop import SharedStop

Sampler = Callable[[], bool]
"""Tells whether the next run is to be traced unasked."""


def run_jobs(jobs: Sequence[Job[Any]], sample: Sampler) -> list[list[Job[Any]]]:
    """Run decoded calls together and encode their answers. Raises nothing.

    Where the run fails, whoever of them it was that made it fail: each is run on its own, and fails or not.

    Args:
        jobs: calls that can be run together; one that cannot, alone.
        sample: asked for each run.

    Returns:
        For each run that was made for answers the calls that it was part of.
    """
    if len(jobs) > 1:
        results = _run_together(jobs, sample())
        if results is not None:
            for job, result in results:
                job.encode(result)
            return [list(jobs)]
    for job in jobs:
        alone = job.run(sample())
        if alone is not None:
            job.encode(alone)
    return [[job] for job in jobs]


def _run_together(jobs: Sequence[Job[Any]], sampled: bool) -> list[tuple[Job[Any], RunResult]] | None:
    """Return each call's part of a run's result, none where all are given up; None where the run failed."""
    counts = [job.items for job in jobs]
    level = max(*(job.level for job in jobs), TraceLevel.ON if sampled else TraceLevel.OFF)
    for job in jobs:
        job.begin_run(sum(counts))
    try:
        inputs = join([job.inputs for job in jobs])
        result = jobs[0].call.model.graph.run(inputs, trace=level, stop=SharedStop(jobs), waits=False)
        parts = split(result.outputs, counts)
    except RunStoppedError as error:
        for job in jobs:
            job.fail(Ending.CANCELED, error)
        return []
    except BaseException:  # the runs one by one tell whose fault it was
        return None
    if parts is None:
        return None
    first = next((job for job in jobs if job.stop_reason() is None), jobs[0])
    for job in jobs:
        job.end_run()
    return [
        (job, RunResult(part, result.trace if job is first or job.level else None))
        for job, part in zip(jobs, parts, strict=True)
    ]
