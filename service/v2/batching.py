"""What v2 clients are told of a model's batches."""

from service.repository.loaded_model import LoadedModel


def max_batch_size(model: LoadedModel) -> int:
    """Return the most rows that requests are put together to, 0 for a model that runs each request on its own."""
    return model.batching.max_batch_size if model.batching.is_on else 0


def is_batch_open(model: LoadedModel) -> bool:
    """Tell whether the first dimension of all inputs and outputs is proved to be a batch, whatever the file says."""
    return model.batching.is_on
