"""What the kept run of `make zoo` found."""

from tests.docs.generated.application import ROOT
from tests.zoo.report import page
from tests.zoo.results import SAVED, from_json


def render() -> str:
    """Return the table of the kept run, or how to make one where none is kept."""
    path = ROOT / SAVED
    if path.exists():
        return page(from_json(path.read_text()))
    return "No run is kept in this repository: `make zoo` measures on your machine and prints the table."
