"""What a page of the documentation holds: its blocks of code, its links, its headings."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARK = re.compile(r"<!-- example: (.*) -->")
_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """A fenced block of code.

    Attributes:
        page: name of the page.
        line: line of the page on which it begins.
        language: what follows the fence.
        text: the code.
        marks: what the comment above it says of the example, `<!-- example: torch, save as train.py -->`.
    """

    page: str
    line: int
    language: str
    text: str
    marks: tuple[str, ...]

    @property
    def target(self) -> str | None:
        """Name of the file that the page says to save the block as."""
        return next(
            (mark.removeprefix("save as ") for mark in self.marks if mark.startswith("save as ")), None
        )

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    before: Token | None = None
    for token in _PARSER.parse(path.read_text(encoding="utf-8")):
        if token.type == "fence":
            found = (
                _MARK.search(before.content) if before is not None and before.type == "html_block" else None
            )
            marks = tuple(mark.strip() for mark in found[1].split(",")) if found else ()
            yield Block(path.name, (token.map or [0])[0] + 1, token.info, token.content, marks)
        before = token


def links(path: Path) -> Iterator[str]:
    """Yield where the links and images of a page lead."""
    for token in _PARSER.parse(path.read_text(encoding="utf-8")):
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrs["href"])
            elif child.type == "image":
                yield str(child.attrs["src"])


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site makes them."""
    tokens = _PARSER.parse(path.read_text(encoding="utf-8"))
    headings = (after.content for token, after in pairwise(tokens) if token.type == "heading_open")
    return {_slug(heading) for heading in headings}


def _slug(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
