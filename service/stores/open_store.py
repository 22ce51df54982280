"""Chooses the library that reads a store."""

from service.config.store_url import StoreUrl
from service.stores.remote_store import RemoteStore


def open_store(url: StoreUrl) -> RemoteStore:
    """Return the store of a URL; nothing is asked of it yet.

    Raises:
        SourceError: what is set in the environment does not lead to a store.
        ModuleNotFoundError: its library is not installed.
    """
    if url.scheme == "hf":
        from service.stores.hugging_face import HuggingFaceStore  # noqa: PLC0415  # each has a library of its own

        return HuggingFaceStore(url)
    from service.stores.object_store import ObjectStore  # noqa: PLC0415

    return ObjectStore(url)
