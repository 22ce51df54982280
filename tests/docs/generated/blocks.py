"""Blocks of a Markdown page that a command writes, each between two comments that name it."""

import re

_BEGIN, _END = "<!-- begin {name}: written by make figures -->", "<!-- end {name} -->"
_NAMED = re.compile(r"^<!-- begin ([a-z0-9-]+): written by make figures -->$", re.MULTILINE)


def names(page: str) -> list[str]:
    """Return the names of a page's blocks, in order."""
    return _NAMED.findall(page)


def put(page: str, name: str, text: str) -> str:
    """Return a page with `text` as the content of its block `name`.

    Raises:
        ValueError: the page does not have the comments that begin and end the block, each once.
    """
    begin, end = _BEGIN.format(name=name), _END.format(name=name)
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page needs one {begin} and one {end}")
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{rest.split(end)[1]}"
