"""When calls of one model are run together, and how many of them."""

from dataclasses import dataclass

from service.repository.batching import run_sizes


@dataclass(frozen=True, slots=True)
class BatchingPolicy:
    """When a batch is run, and how large it may be.

    Attributes:
        max_size: most items (rows) of a batch.
        max_delay: longest time, in seconds, that a call waits for others.
        preferred_sizes: numbers of items that are run at once, without waiting for more.
    """

    max_size: int
    max_delay: float = 0.0
    preferred_sizes: tuple[int, ...] = ()

    @property
    def sizes(self) -> frozenset[int]:
        """Numbers of items that batches have where possible: few, as programs are compiled for each of them."""
        return frozenset((*run_sizes(self.max_size), *self.preferred_sizes))
