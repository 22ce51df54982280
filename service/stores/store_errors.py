"""Errors of obstore as one sentence."""

import re

from service.config.store_url import StoreUrl, without_secrets
from service.repository.model_source import SourceError

_MOST_WORDS = 400
_DETAILS = "\n\nDebug source:"
_DURATIONS = re.compile(r" in [0-9.]+(?:ns|µs|ms|s)\b|, max_retries: \d+, retry_timeout: \w+")
"""What differs between two failures of one kind; what is the same is logged once."""
_BODY = re.compile(r"\s*<.*", re.DOTALL)
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<\n]*)")
_REFUSED = re.compile(r"\b(?:401 Unauthorized|403 Forbidden)\b")
_MACHINE = re.compile(r"/latest/(?:api/token|meta-data/)|/computeMetadata/|/metadata/identity/")
"""Where the clouds give a machine its credentials, which is asked if the environment has none."""


def unreadable(url: StoreUrl, error: Exception) -> SourceError:
    """Return an error that says why a place cannot be read, without anything that may be secret.

    Args:
        url: the place.
        error: what obstore raised.
    """
    text = str(error).partition(_DETAILS)[0]
    code, message = _CODE.search(text), _MESSAGE.search(text)
    words = _DURATIONS.sub("", _BODY.sub("", text).partition("\n")[0]).strip(" :")
    # of a response in XML: other parts of it may tell what was signed
    words = ": ".join([words, *(found[1].strip() for found in (code, message) if found)])
    reason = f"{url} cannot be read{_cause(words)}: {without_secrets(words)[:_MOST_WORDS]}"
    return SourceError(reason)


def _cause(words: str) -> str:
    if _MACHINE.search(words):
        return ", as the environment has no credentials and this machine gives none"
    if _REFUSED.search(words):
        return ", as its credentials are missing, wrong or may not read it"
    return ""
