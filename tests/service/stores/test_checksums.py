"""The file that sha256sum writes."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from service.repository.files import ModelFilesError
from service.stores import checksums
from service.stores.checksums import check_checksums

ONE, TWO = "1" * 64, "2" * 64


def check(folder: Path, text: str | bytes, digests: dict[str, str], where: str = "checksums") -> None:
    (folder / where).parent.mkdir(exist_ok=True)
    (folder / where).write_bytes(text if isinstance(text, bytes) else text.encode())
    check_checksums(folder, digests | {where: "0" * 64})


@pytest.mark.parametrize("options", [[], ["--binary"]])
def test_what_sha256sum_writes_is_read(tmp_path: Path, options: list[str]) -> None:
    names = ["plain", "a b  c", "*star", "./naïve"]
    for name in names:
        (tmp_path / name).write_text(name)
    run = subprocess.run(["sha256sum", *options, "--", *names], cwd=tmp_path, capture_output=True, check=True)
    digests = {name.removeprefix("./"): hashlib.sha256(name.encode()).hexdigest() for name in names}
    check(tmp_path, run.stdout, digests)
    for name in digests:
        with pytest.raises(ModelFilesError, match="is not what checksums lists"):
            check(tmp_path, run.stdout, digests | {name: ONE})


def test_paths_are_those_of_the_folder(tmp_path: Path) -> None:
    text = f"# made by hand\n\n{'A' * 64}  ./x.bin\n{TWO} *samples/1.png\n"
    check(tmp_path, text, {"2/x.bin": "a" * 64, "2/samples/1.png": TWO, "b": ONE}, "2/checksums")


@pytest.mark.parametrize("line", ["x", f"{ONE[1:]}  x", f"{ONE} x", f"{ONE}  ", "MD5 (x) = 0"])
def test_other_lines_are_refused_by_their_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(ModelFilesError, match="checksums, line 2: expected a SHA-256"):
        check(tmp_path, f"{ONE}  a\n{line}\n", {"a": ONE})


def test_two_digests_of_a_file_are_refused(tmp_path: Path) -> None:
    check(tmp_path, f"{ONE}  a\n{ONE}  a\n", {"a": ONE})
    with pytest.raises(ModelFilesError, match="two digests of a"):
        check(tmp_path, f"{ONE}  a\n{TWO}  a\n", {"a": ONE})


def test_what_is_no_list_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelFilesError, match="line 1: expected a SHA-256"):
        check(tmp_path, b"\xff\xfe\0", {})
    monkeypatch.setattr(checksums, "MAX_BYTES", 60)
    with pytest.raises(ModelFilesError, match="checksums has more than 60 bytes"):
        check(tmp_path, f"{ONE}  a\n", {"a": ONE})


def test_every_file_of_the_folder_has_to_be_listed_and_right(tmp_path: Path) -> None:
    text = f"{ONE}  a\n"
    check(tmp_path, text, {"1/a": ONE, "b": TWO}, "1/checksums")
    for digests, message in [
        ({"1/a": TWO}, "1/a is not what 1/checksums lists"),
        ({}, "1/a is listed in 1/checksums, and is not there"),
        ({"1/a": ONE, "1/b": TWO}, "1/b is not listed in 1/checksums"),
    ]:
        with pytest.raises(ModelFilesError, match=message):
            check(tmp_path, text, digests, "1/checksums")
