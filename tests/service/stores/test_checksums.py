"""The file that sha256sum writes."""

import subprocess
from pathlib import Path

import pytest

from service.repository.files import ModelFilesError
from service.stores.checksums import check_checksums, parse_checksums

ONE, TWO = "1" * 64, "2" * 64


@pytest.mark.parametrize("options", [[], ["--binary"], ["--tag"]])
def test_what_sha256sum_writes_is_read(tmp_path: Path, options: list[str]) -> None:
    names = ["plain", "a b  c", "back\\slash", "new\nline", "*star"]
    for name in names:
        (tmp_path / name).write_text(name)
    run = subprocess.run(["sha256sum", *options, "--", *names], cwd=tmp_path, capture_output=True, check=True)
    each = {
        name: subprocess.run(["sha256sum"], input=name.encode(), capture_output=True, check=True)
        .stdout[:64]
        .decode()
        for name in names
    }
    assert parse_checksums(run.stdout.decode(), "") == each


def test_paths_are_those_of_the_folder() -> None:
    text = f"# made by hand\n\n{ONE.upper().replace('1', 'A')}  ./x.bin\n{TWO} *samples/1.png\n"
    assert parse_checksums(text, "2/") == {"2/x.bin": "a" * 64, "2/samples/1.png": TWO}


@pytest.mark.parametrize("line", ["x", f"{ONE[1:]}  x", f"{ONE} x", f"{ONE}  ", "MD5 (x) = 0"])
def test_other_lines_are_refused_by_their_number(line: str) -> None:
    with pytest.raises(ModelFilesError, match="checksums, line 2: expected a SHA-256"):
        parse_checksums(f"{ONE}  a\n{line}\n", "")


def test_two_digests_of_a_file_are_refused() -> None:
    assert parse_checksums(f"{ONE}  a\n{ONE}  a\n", "") == {"a": ONE}
    with pytest.raises(ModelFilesError, match="two digests of a"):
        parse_checksums(f"{ONE}  a\n{TWO}  a\n", "")


def test_every_file_of_the_folder_has_to_be_listed_and_right() -> None:
    check_checksums({"1/a": ONE}, {"1/a": ONE, "1/checksums": TWO, "b": TWO}, "1/")
    for digests, message in [
        ({"1/a": TWO}, "1/a is not what 1/checksums lists"),
        ({}, "1/a is listed in 1/checksums, and is not there"),
        ({"1/a": ONE, "1/b": TWO}, "1/b is not listed in 1/checksums"),
    ]:
        with pytest.raises(ModelFilesError, match=message):
            check_checksums({"1/a": ONE}, digests, "1/")
