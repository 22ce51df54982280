"""The file that sha256sum writes."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from service.repository.files import ModelFilesError
from service.stores import checksums
from service.stores.checksums import check_checksums

ONE, TWO = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()


def check(folder: Path, text: str | bytes, files: dict[str, str], where: str = "checksums") -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(data)
    (folder / where).parent.mkdir(exist_ok=True)
    (folder / where).write_bytes(text if isinstance(text, bytes) else text.encode())
    check_checksums(folder, [*files, where])


@pytest.mark.parametrize("options", [[], ["--binary"]])
def test_what_sha256sum_writes_is_read(tmp_path: Path, options: list[str]) -> None:
    names = ["plain", "a b  c", "*star", "./naïve"]
    for name in names:
        (tmp_path / name).write_text(name)
    run = subprocess.run(["sha256sum", *options, "--", *names], cwd=tmp_path, capture_output=True, check=True)
    files = {name.removeprefix("./"): name for name in names}
    check(tmp_path, run.stdout, files)
    for name in files:
        with pytest.raises(ModelFilesError, match="is not what checksums lists"):
            check(tmp_path, run.stdout, files | {name: "other"})


def test_paths_are_those_of_the_folder(tmp_path: Path) -> None:
    text = f"# made by hand\n\n{ONE.upper()}  ./x.bin\n{TWO} *samples/1.png\n"
    check(tmp_path, text, {"2/x.bin": "1", "2/samples/1.png": "2", "b": "1"}, "2/checksums")


@pytest.mark.parametrize("line", ["x", f"{ONE[1:]}  x", f"{ONE} x", f"{ONE}  ", "MD5 (x) = 0"])
def test_other_lines_are_refused_by_their_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(ModelFilesError, match="checksums, line 2: expected a SHA-256"):
        check(tmp_path, f"{ONE}  a\n{line}\n", {"a": "1"})


def test_two_digests_of_a_file_are_refused(tmp_path: Path) -> None:
    check(tmp_path, f"{ONE}  a\n{ONE}  a\n", {"a": "1"})
    with pytest.raises(ModelFilesError, match="two digests of a"):
        check(tmp_path, f"{ONE}  a\n{TWO}  a\n", {"a": "1"})


def test_what_is_no_list_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelFilesError, match="line 1: expected a SHA-256"):
        check(tmp_path, b"\xff\xfe\0", {})
    monkeypatch.setattr(checksums, "MAX_BYTES", 60)
    with pytest.raises(ModelFilesError, match="checksums has more than 60 bytes"):
        check(tmp_path, f"{ONE}  a\n", {"a": "1"})


def test_every_file_of_the_folder_has_to_be_listed_and_right(tmp_path: Path) -> None:
    text = f"{ONE}  a\n"
    check(tmp_path, text, {"1/a": "1", "b": "2"}, "1/checksums")
    for files, message in [
        ({"1/a": "2"}, "1/a is not what 1/checksums lists"),
        ({}, "1/a is listed in 1/checksums, and is not there"),
        ({"1/a": "1", "1/b": "2"}, "1/b is not listed in 1/checksums"),
    ]:
        with pytest.raises(ModelFilesError, match=message):
            check(tmp_path, text, files, "1/checksums")
