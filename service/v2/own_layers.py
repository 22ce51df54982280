"""Tells which models have layers of the engine alone."""

from weakref import WeakKeyDictionary

from service.repository.loaded_model import LoadedModel


def has_own_layers_only(model: LoadedModel) -> bool:
    """Whether the engine wrote all layers of a model: one of another's may wait for what it likes, whenever it likes.

    Args:
        model: the model.
    """
    known = _known.get(model)
    if known is None:
        known = _known[model] = model.graph.has_own_layers_only
    return known


_known: WeakKeyDictionary[LoadedModel, bool] = WeakKeyDictionary()
