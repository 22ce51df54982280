"""When calls are run together, and how many."""

from dataclasses import dataclass

from service.repository.batching import run_sizes


@dataclass(frozen=True, slots=True)
class BatchRule:
    """When a batch is run.

    Attributes:
        max_size: most items (rows).
        max_delay: seconds that the oldest call waits for others at most.
        preferred_sizes: items that are not waited beyond.
    """

    max_size: int
    max_delay: float = 0.0
    preferred_sizes: tuple[int, ...] = ()

    @property
    def sizes(self) -> frozenset[int]:
        """Items that batches have where calls allow it: few sizes, since each is compiled when it first comes."""
        return frozenset((*run_sizes(self.max_size), *self.preferred_sizes))
