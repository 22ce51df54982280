"""What a process serves, in so few words that another one can compare it with what it serves itself."""

import orjson

from service.services import Services


def served_digests(services: Services) -> bytes:
    """Return model -> digest of what is served of it, as JSON; empty where versions are broken or unloaded.

    Takes a second for some GB of weights. There are none before models are loaded, and where models are polled:
    processes notice changes one after the other.
    """
    if services.loaded is None or services.settings.model_control == "poll":
        return b"{}"
    return orjson.dumps(
        {entry.name: "" if entry.unavailable else entry.digest for entry in services.loaded.entries}
    )
