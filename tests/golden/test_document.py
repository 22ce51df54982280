from tests.golden.document import PAGE, render


def test_page_of_supported_operators_is_up_to_date() -> None:
    """Run `python -m tests.golden.document`."""
    assert PAGE.read_text() == render()
