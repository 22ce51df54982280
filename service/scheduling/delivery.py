"""Delivers the results of calls from a worker to the event loop."""

import contextlib
import logging
from collections.abc import Sequence
from typing import Any

from service.scheduling.scheduled_call import ScheduledCall

_logger = logging.getLogger(__name__)


def deliver(calls: Sequence[ScheduledCall[Any]], runs: Sequence[Sequence[ScheduledCall[Any]]] = ()) -> None:
    """Have the event loop end calls by their results; called by a worker. Calls without a result go on.

    Args:
        calls: the calls.
        runs: the calls of each run that some of them were part of. The first that has not ended yet counts the run.
    """
    if calls:
        with contextlib.suppress(RuntimeError):  # nobody is left on a loop that is closed
            calls[0].loop.call_soon_threadsafe(_complete, calls, runs)


def _complete(calls: Sequence[ScheduledCall[Any]], runs: Sequence[Sequence[ScheduledCall[Any]]]) -> None:
    leaders = {
        next((scheduled for scheduled in run if not scheduled.completion.is_over), None) for run in runs
    }
    for scheduled in calls:
        result = scheduled.progress.result
        if result is None:
            continue
        try:
            scheduled.completion.complete(result, scheduled in leaders)
        except Exception:  # the results of the other calls have to be delivered as well
            _logger.exception("the result of a call could not be delivered")
