"""Chooses what brings the models that the settings name."""

import os

from service.config.extras import needs_extra
from service.config.setting_file import SettingsError
from service.config.settings import Settings
from service.config.store_url import StoreUrl
from service.repository.local_folder import LocalFolder
from service.repository.model_source import ModelSource, SourceError

_SETTLE_SECONDS = 1.0
"""Between the two listings at the start that have to agree, where models are not polled more often."""


# ruff: noqa: PLC0415  # neither these nor their libraries are part of a server whose models are in a folder
def open_source(settings: Settings) -> ModelSource:
    """Return what brings the models that the settings name.

    Raises:
        SettingsError: a library is not installed, the cache's folder cannot be used, or credentials are malformed.
    """
    url = settings.models
    if not isinstance(url, StoreUrl):
        return LocalFolder(url, settings.model_name, is_polled=settings.model_control == "poll")
    from service.stores.state_cache import StateCache, cache_folder
    from service.stores.store_source import RemoteStore, StoreSource

    store: RemoteStore
    try:
        with needs_extra(f"models: {url.scheme}://", "cloud", "huggingface_hub", "obstore"):
            if url.scheme == "hf":
                from service.stores.hugging_face import HuggingFaceStore

                store = HuggingFaceStore(url)
            else:
                from service.stores.object_store import ObjectStore

                store = ObjectStore(url)
    except SourceError as error:
        raise SettingsError(f"models: {error}") from error
    cache = StateCache(cache_folder(os.environ), settings.store_cache_bytes)
    return StoreSource(store, url, cache, settings.model_name, min(settings.poll_seconds, _SETTLE_SECONDS))
