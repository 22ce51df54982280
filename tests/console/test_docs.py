"""The description of the API, where each call can be tried."""

from pathlib import Path

from tests.console.visit import Visit


def open_docs(visit: Visit, operation: str) -> None:
    visit.page.goto(f"{visit.address}/docs")
    visit.page.locator("form.try").first.wait_for(state="attached")
    visit.page.locator(f'[id="{operation}"] > summary').click()


def test_a_call_without_a_body_is_tried(visit: Visit) -> None:
    open_docs(visit, "get/models/{name}")
    form = visit.page.locator('[id="get/models/{name}"] form.try')
    form.get_by_label("name", exact=False).first.fill("digits")
    form.get_by_role("button", name="Send").click()
    form.get_by_text("200").first.wait_for()
    assert '"name": "digits"' in form.locator("pre").inner_text()
    visit.check()


def test_an_example_file_is_sent(visit: Visit) -> None:
    open_docs(visit, "post/infer")
    form = visit.page.locator('[id="post/infer"] form.try')
    form.locator('[name="model"]').fill("digits")
    form.get_by_label("body").select_option("image/png")
    form.get_by_role("button", name="Example digits", exact=False).first.click()
    form.get_by_text("the example's file is the body").wait_for()
    form.get_by_role("button", name="Send").click()
    form.get_by_text("200").first.wait_for()
    assert '"label": "7"' in form.locator("pre").inner_text()
    visit.check()


def test_a_chosen_file_is_sent_as_a_form(visit: Visit, samples: Path) -> None:
    open_docs(visit, "post/infer")
    form = visit.page.locator('[id="post/infer"] form.try')
    form.locator('[name="model"]').fill("digits")
    form.get_by_label("body").select_option("multipart/form-data")
    form.locator('input[type="file"]').set_input_files(samples / "3.png")
    form.get_by_role("button", name="Send").click()
    form.get_by_text("200").first.wait_for()
    assert '"label": "3"' in form.locator("pre").inner_text()
    visit.check()
