"""How a model's batching is presented to clients of the protocol."""

from service.repository.loaded_model import LoadedModel


def max_batch_size(model: LoadedModel) -> int:
    """Return the largest batch that requests are combined into; 0 for a model that runs every request on its own."""
    return model.batching.max_batch_size if has_dynamic_batch(model) else 0


def has_dynamic_batch(model: LoadedModel) -> bool:
    """Return whether the first dimension of inputs and outputs is proved to be the batch, even if the file fixes it."""
    return model.batching.max_batch_size > 1
