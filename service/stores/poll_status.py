"""What came of looking for changes of models, as metrics show it."""

import time
from collections import Counter
from dataclasses import dataclass, field

LOADED, REFUSED, REMOVED = "loaded", "refused", "removed"
"""What can come of a change."""


@dataclass(slots=True)
class PollStatus:
    """Counts of one poller; its thread alone writes them.

    Attributes:
        succeeded: polls that listed the models.
        failed: polls that did not.
        last_success: when a poll last listed the models, in seconds since 1970; 0 before that.
        changes: how often models were loaded, refused and removed.
    """

    succeeded: int = 0
    failed: int = 0
    last_success: float = 0.0
    changes: Counter[str] = field(default_factory=lambda: Counter({LOADED: 0, REFUSED: 0, REMOVED: 0}))

    def succeed(self) -> None:
        """Note that the models were listed now."""
        self.succeeded += 1
        self.last_success = time.time()
