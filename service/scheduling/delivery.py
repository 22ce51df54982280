"""Delivers the results of calls from a worker to the event loop."""

import logging
from collections.abc import Sequence
from typing import Any

from service.scheduling.loop_inbox import Inbox
from service.scheduling.scheduled_call import ScheduledCall

_logger = logging.getLogger(__name__)


def deliver(
    inbox: Inbox, calls: Sequence[ScheduledCall[Any]], runs: Sequence[Sequence[ScheduledCall[Any]]] = ()
) -> None:
    """Have the event loop end calls by their results; called by a worker. Calls without a result go on.

    Args:
        inbox: the event loop's.
        calls: the calls.
        runs: the calls of each run that some of them were part of. The first that has not ended yet counts the run.
    """
    if calls:
        inbox.call(_complete, calls, runs)


def _complete(calls: Sequence[ScheduledCall[Any]], runs: Sequence[Sequence[ScheduledCall[Any]]]) -> None:
    leaders = [_leader(run) for run in runs]
    for scheduled in calls:
        result = scheduled.progress.result
        if result is None:
            continue
        try:
            scheduled.completion.complete(result, scheduled in leaders)
        except Exception:  # the results of the other calls have to be delivered as well
            _logger.exception("the result of a call could not be delivered")


def _leader(run: Sequence[ScheduledCall[Any]]) -> ScheduledCall[Any] | None:
    """Return the first call of a run that has not ended yet; None where all have."""
    for scheduled in run:
        if not scheduled.completion.is_over:
            return scheduled
    return None
