"""What v2 clients are told of a model's batches."""

from service.loaded_model import LoadedModel


def max_batch_size(model: LoadedModel) -> int:
    """Return the most items that requests are put together to, 0 for a model that is not batched."""
    del model
    return 0


def is_batch_open(model: LoadedModel) -> bool:
    """Tell whether the first dimension of all inputs and outputs is a batch of any extent, whatever the file says."""
    return max_batch_size(model) > 0
