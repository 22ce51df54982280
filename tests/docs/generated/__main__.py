"""Writes every generated block of README and docs. Run: make figures, or python -m tests.docs.generated."""

from tests.bench import plot
from tests.bench.results import SAVED, from_json
from tests.docs.generated.pages import FILES, pages, write_page


def main() -> None:
    """Write the blocks of all pages, and the files that are generated as a whole."""
    for path in pages():
        path.write_text(write_page(path.read_text()))
    for path, render in FILES.items():
        path.write_text(render())
    plot.write(from_json(SAVED.read_text()), plot.PLOT)


if __name__ == "__main__":
    main()
