"""Every example of the README and of the documentation runs, in the order of its page.

Pages with examples that need PyTorch and the exporter are run whole by `make examples`, and no other page: there is
nothing in those that `make test` leaves out. `make test` runs all pages; the files that such examples made once take
their place (`tests/docs/exported/`), and all that follows them runs as well. `TEST_KEEP_EXPORTS=1 make examples` makes
these files again.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.docs.checkout import ROOT, checkout
from tests.docs.markdown import blocks
from tests.docs.runner import Runner, pages

WITH_TORCH = bool(os.environ.get("TEST_EXAMPLES_WITH_TORCH"))
KEEP = bool(os.environ.get("TEST_KEEP_EXPORTS"))
NATIVE = ROOT / "docs" / "tutorial.md"
"""The page that shows which kernels ran; other servers need not compile their models first."""
OWN_TEST = ROOT / "docs" / "guides" / "own-operator.md"
"""The Python of this page is run by `test_own_operator.py`, which looks closer at what it computes."""


def pages_to_run() -> list[Path]:
    """Return the pages that have examples; with PyTorch, only those that have some which need it."""
    if not WITH_TORCH:
        return [page for page in pages() if any(blocks(page))]
    return [page for page in pages() if any({"torch", "recipe"} & set(block.marks) for block in blocks(page))]


def names_of(page: Path) -> dict[str, Any]:
    """Return what the Python examples of a page suppose: the README's reader has a network of their own."""
    if page.name != "README.md" or not WITH_TORCH:
        return {}
    from torch import nn

    layers = (nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    return {"MyNet": lambda: nn.Sequential(*layers)}


@pytest.fixture(scope="session")
def find_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], int]]:
    """Returns the port of one server for all pages that suppose one; it starts when it is first needed."""
    with checkout(tmp_path_factory.mktemp("supposed"), "numpy") as place:

        def find() -> int:
            if place.servers.port is None:
                problem = place.servers.start(["serve"], place.environment)
                assert problem is None, problem
            assert place.servers.port is not None
            return place.servers.port

        yield find


@pytest.fixture(autouse=True)
def certificate(tmp_path: Path) -> None:
    """The files that the guide on HTTPS names."""
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for blob in issued.cert_chain_pems:
        blob.write_to_path(str(tmp_path / "chain.pem"), append=True)


@pytest.mark.parametrize("page", pages_to_run(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_of_a_page_run(page: Path, tmp_path: Path, find_server: Callable[[], int]) -> None:
    with checkout(tmp_path, "native" if page == NATIVE else "numpy") as place:
        runner = Runner(page.name, place, WITH_TORCH, names_of(page), find_server)
        try:
            for block in blocks(page):
                if page == OWN_TEST and block.language == "python" and block.target is None:
                    continue
                runner.run(block)
                if KEEP and "torch" in block.marks:
                    runner.keep()
        finally:
            runner.close()
