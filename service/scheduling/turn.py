"""What one worker does for one model at a stretch."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

from service.scheduling.batch_run import run_jobs
from service.scheduling.job import Job
from service.scheduling.trace_setting import TraceSetting

_logger = logging.getLogger(__name__)

Former = Callable[[Sequence[Job[Any]]], list[Job[Any]]]
"""Takes decoded calls and returns those that are to be run now, together; the others wait for their own batch."""


class Turn:
    """Calls that a worker took, until it hands their answers over.

    Args:
        jobs: calls to be decoded.
        batch_items: most items of a run of several; 1 where each call is run on its own.
        tracing: which runs are traced unasked.

    Attributes:
        jobs: calls that are to be answered when the turn ends.
    """

    def __init__(self, jobs: list[Job[Any]], batch_items: int, tracing: TraceSetting) -> None:
        self.jobs = jobs
        self._batch_items = batch_items
        self._tracing = tracing
        self._runs: list[list[Job[Any]]] = []

    def carry_out(self, form: Former) -> None:
        """Decode, run and encode; in a worker. Raises nothing.

        Args:
            form: asked for the batch, where calls are run together.
        """
        sound = [job for job in self.jobs if job.decode()]
        if self._batch_items > 1:
            failed = [job for job in self.jobs if job.is_settled]
            for job in sound:
                job.join_group(self._batch_items)
            self.jobs = form(sound)
            _call_on_loop(failed, _deliver, failed)
            sound = self.jobs
        if sound:
            self._runs = run_jobs(sound, self._tracing.sample)

    def hand_over(self) -> None:
        """Hand the answers to the event loop."""
        _call_on_loop(self.jobs, _deliver_runs, self.jobs, self._runs)


def _call_on_loop(jobs: Sequence[Job[Any]], function: Callable[..., None], *arguments: object) -> None:
    if jobs:
        # a closed loop has nobody left who waits
        with contextlib.suppress(RuntimeError):
            jobs[0].loop.call_soon_threadsafe(function, *arguments)


def _deliver_runs(jobs: Sequence[Job[Any]], runs: Sequence[Sequence[Job[Any]]]) -> None:
    for run in runs:
        leader = next((job for job in run if not job.is_recorded), None)
        if leader is not None:
            leader.leads_run = True
    _deliver(jobs)


def _deliver(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        try:
            job.deliver()
        except Exception:  # the others' answers are waited for as well
            _logger.exception("an answer could not be handed over")
