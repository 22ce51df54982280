"""A web page of another origin, whose visitor's browser reaches a server without keys on its own machine."""

from tests.attack.attack import Attack, Target

UNLOAD = "/v2/repository/models/digits/unload"
RUN = "/infer?model=digits"
SITE = "evil.example:8000"
_SIMPLE = "Content-Type: text/plain"
"""What a page may send to any server without a preflight."""
_PAGE = ("Host: 127.0.0.1", f"Origin: http://{SITE}", "Sec-Fetch-Site: cross-site", _SIMPLE)
_OLD_BROWSER = ("Host: 127.0.0.1", "Origin: null", _SIMPLE)
_FORM_WITHOUT_ORIGIN = ("Host: 127.0.0.1", _SIMPLE)
_REBOUND = (f"Host: {SITE}", f"Origin: http://{SITE}", "Sec-Fetch-Site: same-origin", _SIMPLE)
"""The site's name resolves to 127.0.0.1 by now, so that the browser takes the server for a part of the site."""
_CASES = (
    (UNLOAD, _PAGE),
    (UNLOAD, _OLD_BROWSER),
    (UNLOAD, _FORM_WITHOUT_ORIGIN),
    (UNLOAD, _REBOUND),
    (RUN, _PAGE),
    (RUN, _REBOUND),
)


def run(target: Target, count: int) -> None:
    """Visit `count` such pages, each of which tries everything."""
    for _ in range(count):
        for path, headers in _CASES:
            lines = (f"POST {path} HTTP/1.1", *headers, "Content-Length: 2")
            with target.connect() as wire:
                wire.send("\r\n".join((*lines, "", "{}")).encode())
                wire.reply()


OTHER_ORIGINS = Attack(
    "pages of other origins",
    "visits",
    run,
    (5, 500, 5000),
    flags=("--model-control", "explicit"),
)
