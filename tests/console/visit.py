"""A page of the console, and what has gone wrong in it so far."""

from typing import Any
from urllib.parse import urlsplit

ORIGIN_ARGUMENTS = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"]
"""Arguments of a browser whose camera shows a picture of its own."""
_NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", event =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""
SOON_MS = 60_000
"""Timeout of a test for what a page is to show, in milliseconds."""


class Visit:
    """A page that takes note of its requests, of errors, and of what its policy has blocked.

    Args:
        page: a new page.
        address: where the server is.

    Attributes:
        page: the page.
        address: where the server is.
        requests: addresses that were asked for, in order.
        errors: what the console of the browser showed as an error, and what was thrown.
        dialogs: texts of dialogs that were opened.
    """

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.dialogs: list[str] = []
        page.set_default_timeout(SOON_MS)
        page.add_init_script(_NOTE_VIOLATIONS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._dismiss)

    def open(self, place: str = "#/") -> None:
        """Open an address of the console, from `#` on, and wait until nothing more is asked for."""
        self.page.goto(f"{self.address}/console{place}")
        self.settle()

    def settle(self) -> None:
        """Wait until the page has shown itself and asks for nothing."""
        self.page.locator("#main > .loading").wait_for(state="detached")
        self.page.wait_for_load_state("networkidle")

    def pages(self) -> dict[str, str]:
        """Return name -> address of each page that the bar leads to."""
        links = self.page.locator("nav#tabs a")
        links.first.wait_for()
        return {link.inner_text().strip(): link.get_attribute("href") for link in links.all()}

    def check(self) -> None:
        """Check that nothing was asked of others, nothing was blocked, and nothing has failed."""
        own = urlsplit(self.address).netloc
        foreign = [
            url
            for url in self.requests
            if urlsplit(url).scheme not in {"data", "blob"} and urlsplit(url).netloc != own
        ]
        assert not foreign
        assert not self.page.evaluate("window.violations")
        assert not self.errors
        assert not self.dialogs

    def _hear(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()
