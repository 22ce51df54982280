"""Pages keep to their length, and pages and code to the field's terms."""

import re
from pathlib import Path

from tests.cases import check_each

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MAX_README_LINES = 130
MAX_CONTRIBUTING_LINES = 70
MAX_RECORD_LINES = 40
MAX_WORDS = 45_000
"""Words of README, CONTRIBUTING and docs together."""
TERMS = (
    r"Shelf",
    r"PacedClock|Throttle|LoneCalls|PeerTurns|RefusalPace|Preloader|GivenUp|Unrounded",
    r"beside requests",
    r"gave way|gives? way",
    r"giv(?:en|es?|ing) up|gave up",
    r"headroom|foresight",
    r"heavy work(?:ers?)?|heavy queue|heavy requests?",
    r"laid down",
    r"makes? way",
    r"mask of lanes",
    r"numpy layers?",
    r"open (?:axis|axes|programs?|kernels?)",
    r"paired (?:kernels?|selection|passes)",
    r"proved batching",
    r"rollback news",
    r"stands? in",
    r"told sizes?",
    r"within a loss",
    r"word_error",
    r"worth (?:its|the) loss",
)
"""Private terms: what the field says instead is in the guide on style; each is a regular expression for whole words."""
TERMS_OF_CODE = (
    r"anew",
    r"beside requests",
    r"dealt",
    r"gave way|gives? way",
    r"giv(?:en|es?|ing) up|gave up|give_up\w*",
    r"has_pairs|paired (?:kernels?|selection|passes)",
    r"headroom|foresight|_?patience|_?PATIENCE",
    r"heavy (?:work\w*|queue|requests?)",
    r"(?:by|in) turns",
    r"kept traces|kept_traces|KeptTraces",
    r"laid down",
    r"LoneCalls|PacedClock|PeerTurns|RefusalPace|GivenUp|Shelf|Cursor|SurfaceName",
    r"mask of lanes",
    r"_?most_\w+(?<!most_common)|_?MOST_\w+",
    r"numpy layers?",
    r"open[ _](?:axis|axes|batch|dimensions?|lengths?|sizes?)|open programs?",
    r"program_not_worth",
    r"stand(?:s|ing)? in for",
    r"told|tells",
    r"word_error",
    r"worth its loss",
)
"""Private terms in source files."""
TERMS_OUTSIDE_GUIDES = (
    r"anew",
    r"(?:is|are) told",
    r"turns",
    r"the interpreter's lock|Python's lock",
    r"answers",
)
"""Terms that some guides still have."""
CODE = [
    path
    for folder in ("deploy", "engine", "examples", "kuiper", "models", "service", "tests")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".css", ".html", ".js", ".proto", ".py", ".tpl", ".yaml") and path != Path(__file__)
]
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
GUIDES = sorted((DOCS / "guides").glob("*.md"))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_pages_have_their_length() -> None:
    def check(case: tuple[str, int]) -> None:
        assert lines_of(ROOT / case[0]) <= case[1]

    records = sorted((DOCS / "decisions").glob("0*.md"))
    check_each(
        [
            ("README.md", MAX_README_LINES),
            ("CONTRIBUTING.md", MAX_CONTRIBUTING_LINES),
            *((path.relative_to(ROOT).as_posix(), MAX_RECORD_LINES) for path in records),
        ],
        check,
    )


def test_pages_have_no_more_words_than_people_read() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= MAX_WORDS


def test_pages_use_the_terms_of_the_field() -> None:
    def check(case: tuple[str, str]) -> None:
        found = re.search(rf"\b(?:{case[1]})\b", (ROOT / case[0]).read_text(encoding="utf-8"), re.IGNORECASE)
        assert found is None, f"{found[0]!r} is a private term"

    everywhere = ((page, term) for page in [*PAGES, *GUIDES] for term in TERMS)
    elsewhere = ((page, term) for page in PAGES for term in TERMS_OUTSIDE_GUIDES)
    cases = ((page.relative_to(ROOT).as_posix(), term) for page, term in [*everywhere, *elsewhere])
    check_each(cases, check)


def test_code_uses_the_terms_of_the_field() -> None:
    terms = re.compile(rf"\b(?:{'|'.join(TERMS_OF_CODE)})\b")

    def check(path: Path) -> None:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = terms.search(line)
            assert found is None, f"{path.relative_to(ROOT)}:{number}: {found[0]!r} is a private term"

    check_each(CODE, check)
