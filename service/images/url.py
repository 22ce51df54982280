"""URLs that are sent in place of pictures: the server fetches nothing."""

import re

_URL = re.compile(r"\s{0,64}(?:https?|ftp|file|s3|gs|az|hf)://", re.IGNORECASE)
URL_ADVICE = "URLs are not fetched; send the picture itself: as the body, as a file of a form, or in base64"


def is_url(value: object) -> bool:
    """Return whether a text, or the bytes of one, begin as a URL of a picture would."""
    text = value[:128].decode("latin-1") if isinstance(value, bytes) else value
    return isinstance(text, str) and _URL.match(text) is not None
