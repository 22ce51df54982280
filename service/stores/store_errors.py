"""Errors of the stores' libraries as one sentence, without anything that may be secret."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from service.config.store_url import StoreUrl, without_secrets
from service.repository.model_source import SourceError

_MAX_CHARACTERS = 400
_DURATIONS = re.compile(r" in [0-9.]+(?:ns|µs|ms|s)\b|, max_retries: \d+, retry_timeout: \w+")
"""What differs between two failures of one kind; what is the same is logged once."""
_BODY = re.compile(r"\s*<.*", re.DOTALL)
_IN_BODY = re.compile(r"<(?:Code|Message)>([^<\n]*)")
"""What is shown of a response in XML; other parts of it may repeat what was signed."""
_CAUSES = {
    # where the clouds give a machine its credentials, which is asked if the environment has none
    r"/latest/(?:api/token|meta-data/)|/computeMetadata/|/metadata/identity/": (
        ", as the environment has no credentials and this machine gives none"
    ),
    r"\b(?:401 Unauthorized|403 Forbidden)\b": ", as its credentials are missing, wrong or may not read it",
}


@contextmanager
def worded(url: StoreUrl) -> Iterator[None]:
    """Turn any error of a library into a `SourceError` that says why a place cannot be read."""
    try:
        yield
    except SourceError:
        raise
    except Exception as error:  # of obstore's own, or of an HTTP library below huggingface_hub
        text = str(error).strip().partition("\n\nDebug source:")[0]
        words = [_DURATIONS.sub("", _BODY.sub("", text).partition("\n")[0]), *_IN_BODY.findall(text)[:2]]
        reason = without_secrets(": ".join(word.strip(" :") for word in words))[:_MAX_CHARACTERS]
        cause = next((text for pattern, text in _CAUSES.items() if re.search(pattern, reason)), "")
        raise SourceError(f"{url} cannot be read{cause}: {reason}") from error
