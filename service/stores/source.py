"""Chooses what brings the models that the settings name."""

import os

from service.config.extras import needs_extra
from service.config.setting_file import SettingsError
from service.config.settings import Settings
from service.config.store_url import StoreUrl
from service.repository.model_source import ModelSource, SourceError


# ruff: noqa: PLC0415  # neither these nor their libraries are part of a server whose models are in a folder
def open_source(settings: Settings) -> ModelSource:
    """Return what brings the models that the settings name.

    Raises:
        SettingsError: a library is not installed, the cache's folder cannot be used, or credentials are malformed.
    """
    url = settings.models
    if not isinstance(url, StoreUrl):
        return ModelSource(url, settings.model_name, is_polled=settings.model_control == "poll")
    from service.stores.file_pool import FilePool, pool_folder
    from service.stores.store_errors import worded
    from service.stores.store_source import RemoteStore, StoreSource

    store: RemoteStore
    try:
        with needs_extra(f"models: {url.scheme}://", "cloud", "huggingface_hub", "obstore"):
            if url.scheme == "hf":
                from service.stores.hugging_face import HuggingFaceStore

                store = HuggingFaceStore(url)
            else:
                from service.stores.object_store import ObjectStore

                with worded(url):
                    store = ObjectStore(url)
    except SourceError as error:
        raise SettingsError(f"models: {error}") from error
    pool = FilePool(pool_folder(os.environ), settings.store_cache_bytes)
    return StoreSource(store, url, pool, settings.model_name)
