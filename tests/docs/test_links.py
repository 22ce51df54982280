"""Links of the README and of the documentation lead somewhere; nothing is asked over the network."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from service.config.settings import describe_settings
from tests.cases import check_each
from tests.docs.generated.folders import packages
from tests.docs.markdown import anchors, blocks, links
from tests.docs.runner import pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OTHER_VARIABLES = {"KUIPER_CACHE", "KUIPER_TARGET", "KUIPER_SERVICE_HOST", "KUIPER_PORT_8000_TCP"}
"""What the compiler reads, and what Kubernetes sets."""
LANGUAGES = {"sh", "console", "python", "toml", "text"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_links_lead_somewhere() -> None:
    def check(case: tuple[str, str]) -> None:
        page, link = ROOT / case[0], case[1]
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme in ("http", "https")
            assert parts.hostname
            return
        target = (page.parent / parts.path).resolve() if parts.path else page
        assert target.is_file()
        if DOCS in page.parents:
            assert DOCS in target.parents, "not part of the site"
        if parts.fragment and "::: " not in target.read_text(encoding="utf-8"):
            assert parts.fragment in found_anchors(target)

    found_anchors = cache(anchors)
    check_each(((name_of(page), link) for page in pages() for link in links(page)), check)


def test_code_has_a_language_that_examples_are_run_in() -> None:
    def check(case: tuple[str, int, str]) -> None:
        assert case[2] in LANGUAGES

    found = ((name_of(page), block.line, block.language) for page in pages() for block in blocks(page))
    check_each(found, check)


def test_navigation_names_every_page_once() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"[\w/.-]+\.md", config.partition("\nnav:")[2])
    there = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    records = {
        name for name in there if re.match(r"decisions/\d", name)
    }  # the index of decisions lists these
    assert sorted(named) == sorted(there - records)
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    assert all(Path(name).name in index for name in records)


def test_targets_of_make_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"(?:`|^)make ([a-z][a-z-]+)", text, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: make {target}"


def test_settings_that_pages_name_exist() -> None:
    known = {doc.variable for doc in describe_settings()} | OTHER_VARIABLES
    for page in pages():
        assert set(re.findall(r"KUIPER_[A-Z0-9_]*[A-Z0-9]", page.read_text(encoding="utf-8"))) <= known, page


def test_folders_that_the_architecture_names_exist() -> None:
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:engine|service|tests|models|monitoring)/[\w/]*)`", page))
    assert all((ROOT / name).is_dir() for name in named)
    held = {
        f"{folder.relative_to(ROOT).as_posix()}/"
        for name in ("engine", "service")
        for folder in packages(ROOT / name)
    }
    assert held <= named


def test_files_and_definitions_that_the_compiler_page_names_exist() -> None:
    page = (DOCS / "explanation" / "compiler.md").read_text(encoding="utf-8")
    compiler = ROOT / "engine" / "compiler"
    for name in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page):
        assert (compiler / name).exists() or (ROOT / name).exists(), name
    for name, definition in re.findall(r"`(\w+/\w+\.py)`, `([\w.]+)`", page):
        source = (compiler / name).read_text(encoding="utf-8")
        for part in definition.split("."):
            assert re.search(rf"^ *(?:class|def) {part}\b", source, re.MULTILINE), definition


def test_python_reference_names_all_that_the_engine_exports() -> None:
    import engine
    from engine import check

    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: engine\.(\w+)$", page, re.MULTILINE))
    assert set(engine.__all__) <= shown, set(engine.__all__) - shown
    compared = set(re.findall(r"^::: engine\.check\.(\w+)$", page, re.MULTILINE))
    assert compared == set(check.__all__)
