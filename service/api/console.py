"""`GET /console`: the page that shows models, runs and what is in them. Its files are in `service/console/`."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from service.http.conditional import response_unless_known
from service.tagged_document import tagged

CONSOLE_FILES = Path(__file__).parents[1] / "console"
"""The folder of the page's files."""

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
"""Media types of the page's files, by suffix; other files are not served."""

CONSOLE_HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' blob: data:",
            "connect-src 'self'",
            "media-src 'self' blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every file of the page: nothing of it comes from elsewhere, and no text becomes a script."""

router = APIRouter(include_in_schema=False)


@router.get("/console")
def show_console(request: Request) -> Response:
    """Send the page."""
    return _send(request, "index.html")


@router.get("/console/{path:path}")
def send_file(request: Request, path: str) -> Response:
    """Send a file of the page; `/console/` leads to the page, whose links are relative to `/console`."""
    if not path:
        return RedirectResponse("../console")
    return _send(request, path)


def _send(request: Request, path: str) -> Response:
    content = read_console_file(path)
    if content is None:
        raise HTTPException(404)
    media_type = MEDIA_TYPES[Path(path).suffix]
    return response_unless_known(request, tagged(content), media_type, CONSOLE_HEADERS)


def read_console_file(path: str) -> bytes | None:
    """Return the bytes of a file of the page.

    Args:
        path: its path below `service/console/`, as a client wrote it.

    Returns:
        None where there is no such file: none outside the folder, and none whose name says nothing of its kind.
    """
    file = CONSOLE_FILES.joinpath(path)
    if file.suffix not in MEDIA_TYPES or ".." in file.parts or "\0" in path:
        return None
    try:
        is_inside = file.is_relative_to(CONSOLE_FILES) and file.is_file()
        return file.read_bytes() if is_inside else None
    except OSError:  # a name that is longer than the file system's names are
        return None
