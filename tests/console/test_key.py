"""A server with keys: the page asks for one, uses it, and keeps it nowhere."""

from typing import TYPE_CHECKING

from tests.console.visit import Visit
from tests.service.server.process import ROOT, ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KEY = "a-key-of-twenty-letters"


def test_the_page_asks_for_the_key_and_keeps_it_in_memory_only(browser: "Browser") -> None:
    models = str(ROOT / "models/digits")
    with ServerProcess("--models", models, module="service", environment={"KUIPER_API_KEYS": KEY}) as server:
        context = browser.new_context()
        visit = Visit(context.new_page(), server.url)
        visit.page.goto(f"{server.url}/console#/digits/playground")
        field = visit.page.get_by_label("API key")
        field.fill("a-wrong-key-of-twenty-letters")
        visit.page.get_by_role("button", name="Use this key").click()
        visit.page.get_by_text("The server does not accept this key.").wait_for()
        assert field.get_attribute("aria-invalid") == "true"
        field.fill(KEY)
        visit.page.get_by_role("button", name="Use this key").click()
        visit.page.get_by_role("button", name="Sample 7.png").click()
        response = visit.page.locator(".top-label")
        response.wait_for()
        assert response.inner_text() == "7"
        visit.page.locator("summary", has_text="This request").click()
        assert "$KEY" in visit.page.locator(".code-box pre").inner_text()
        assert KEY not in visit.page.content()
        stored = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
        assert KEY not in visit.page.evaluate(stored)
        assert not visit.page.evaluate("window.violations")
        visit.page.reload()
        field.wait_for()
        assert field.input_value() == ""
        context.close()
