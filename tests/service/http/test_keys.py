"""Rings of keys, fixed and from files that change."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from service.config.setting_file import SettingsError
from service.http import keys as module
from service.http.keys import KeyRing

OLD, NEW = "old-0123456789abcdef", "new-0123456789abcdef"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_second(self) -> None:
        self.now += 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ring(keys: str | None = None, path: Path | None = None, clock: Clock | None = None) -> KeyRing:
    return KeyRing("api_keys", None if keys is None else SecretStr(keys), path, clock or Clock())


def write(path: Path, text: str) -> Path:
    """Write a file again, as a file of its own: its time alone might be that of the one before."""
    draft = path.with_suffix(".new")
    draft.write_text(text)
    return draft.replace(path)


def test_ring_without_keys_is_not_set() -> None:
    assert not ring().is_set
    assert not ring().accepts([b"", b"a"])


def test_any_of_several_keys_opens() -> None:
    both = ring(f"{OLD}, {NEW},")
    assert both.is_set
    assert both.accepts([OLD.encode()])
    assert both.accepts([b"other", NEW.encode()])
    for wrong in (
        [],
        [b""],
        [OLD[:-1].encode()],
        [OLD.encode() + b"x"],
        [f"{OLD}, {NEW}".encode()],
        [b"\xff"],
    ):
        assert not both.accepts(wrong)


def test_all_keys_are_compared_whichever_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(own: bytes, given: bytes) -> bool:
        compared.append((own, given))
        return own == given

    monkeypatch.setattr(module, "compare_digest", compare)
    both = ring(f"{OLD},{NEW}")
    for given in (OLD, NEW, "neither"):
        compared.clear()
        both.accepts([given.encode()])
        assert len(compared) == 2
        assert all(len(digest) == 32 for pair in compared for digest in pair)


def test_file_has_a_key_a_line_and_comments(tmp_path: Path) -> None:
    text = f"\ufeff# ours\r\n{OLD}\r\n\n  {NEW}   # from May on\nwith#hash-0123456789\n"
    filed = ring(path=write(tmp_path / "keys", text))
    assert all(filed.accepts([key.encode()]) for key in (OLD, NEW, "with#hash-0123456789"))
    assert not filed.accepts([b"# ours"])
    assert not filed.accepts([b"ours"])


def test_changed_file_is_read_again_within_a_second(tmp_path: Path, clock: Clock) -> None:
    path = write(tmp_path / "keys", OLD)
    filed = ring(NEW, path, clock)
    write(path, "third-0123456789abcdef")
    assert filed.accepts([OLD.encode()])
    clock.pass_second()
    assert not filed.accepts([OLD.encode()])
    assert filed.accepts([b"third-0123456789abcdef"])
    assert filed.accepts([NEW.encode()])


def test_file_behind_a_link_is_read_again_when_the_link_is_swapped(tmp_path: Path, clock: Clock) -> None:
    first, second, link = tmp_path / "1", tmp_path / "2", tmp_path / "keys"
    first.write_text(OLD)
    second.write_text(NEW)
    link.symlink_to(first)
    filed = ring(None, link, clock)
    (tmp_path / "draft").symlink_to(second)
    (tmp_path / "draft").replace(link)
    clock.pass_second()
    assert filed.accepts([NEW.encode()])


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: write(path, "two words")])
def test_last_keys_hold_while_the_file_is_unusable(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], object]
) -> None:
    path = write(tmp_path / "keys", OLD)
    filed = ring(None, path, clock)
    spoil(path)
    for _ in range(3):
        clock.pass_second()
        assert filed.accepts([OLD.encode()])
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    write(path, NEW)
    clock.pass_second()
    assert not filed.accepts([OLD.encode()])
    assert filed.accepts([NEW.encode()])


def test_emptied_file_lets_nobody_in(tmp_path: Path, clock: Clock) -> None:
    path = write(tmp_path / "keys", OLD)
    filed = ring(None, path, clock)
    write(path, "# none\n")
    clock.pass_second()
    assert filed.is_set
    assert not filed.accepts([OLD.encode()])


def test_short_keys_are_warned_of_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    ring(f"{OLD},short-secret")
    (record,) = caplog.records
    assert "key 2 has less than 16 characters" in record.getMessage()
    assert "secret" not in record.getMessage()


@pytest.mark.parametrize("keys", ["", ",", "two words-0123456789", "umläut-0123456789", "x" * 513])
def test_bad_keys_are_refused_and_not_shown(keys: str) -> None:
    with pytest.raises(SettingsError, match="api_keys: ") as refused:
        ring(keys)
    assert not keys.strip(",") or keys not in str(refused.value)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    for text in ("", "# none\n", "two words\n", "k" * (1 << 20) + "k"):
        with pytest.raises(SettingsError, match="api_keys_file: "):
            ring(path=write(tmp_path / "keys", text))
    with pytest.raises(SettingsError, match="api_keys_file: cannot read .*none: No such file"):
        ring(path=tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="api_keys_file: .*not a regular file"):
        ring(path=tmp_path / "pipe")
