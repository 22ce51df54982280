"""Tells which models are run without waiting for anything."""

from weakref import WeakKeyDictionary

from service.repository.loaded_model import LoadedModel


def waits_for_nothing(model: LoadedModel) -> bool:
    """Whether runs of a model wait for nothing, as far as the graph knows; remembered, as each request asks for it.

    Args:
        model: the model.
    """
    known = _known.get(model)
    if known is None:
        known = _known[model] = model.graph.waits_for_nothing
    return known


_known: WeakKeyDictionary[LoadedModel, bool] = WeakKeyDictionary()
