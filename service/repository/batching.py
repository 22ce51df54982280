"""Whether the requests for a model are run together."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine import RuntimeGraph
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.repository.batching_proof import Items, find_obstacle


@dataclass(frozen=True, slots=True)
class Batching:
    """What was found out about a model when it was loaded.

    Attributes:
        max_batch_size: most items (rows) of a run that serves several requests; 1 where each is run on its own.
        refusal: why it is 1 although more was asked for; None unless it was.
    """

    max_batch_size: int = 1
    refusal: str | None = None

    @property
    def is_on(self) -> bool:
        """Whether requests are run together."""
        return self.max_batch_size > 1


UNBATCHED = Batching()


def run_sizes(max_size: int) -> list[int]:
    """Return the powers of two below the size of the largest batch, and that size: the rows that batches have."""
    return [*(1 << power for power in range(max_size.bit_length()) if 1 << power < max_size), max_size]


def plan_batching(
    graph: RuntimeGraph, config: ModelConfig, default_size: int, limits: Limits, known: Sequence[Items] = ()
) -> Batching:
    """Prove that a model's graph can run requests together, where its configuration wants that.

    Args:
        graph: the graph, built.
        config: the model's `model.toml`.
        default_size: `max_batch_size` of models that do not say.
        limits: what a request may ask for; nothing larger is tried.
        known: shapes of items that requests are to have, as far as that is told: these are tried first.
    """
    wanted = config.batching.max_batch_size or default_size
    if wanted == 1:
        return UNBATCHED
    refusal = find_obstacle(graph, wanted, limits, known)
    if refusal is not None:
        return Batching(refusal=refusal)
    return Batching(wanted)
