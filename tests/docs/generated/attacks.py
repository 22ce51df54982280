"""What came of the kept run of `make attack`."""

from tests.attack.report import page
from tests.attack.results import SAVED, from_json
from tests.docs.generated.application import ROOT


def render() -> str:
    """Return the table of the kept run, or how to make one where none is kept."""
    path = ROOT / SAVED
    if path.exists():
        return page(from_json(path.read_text()))
    return "No run is kept in this repository: `make attack` measures on your machine and prints the table."
