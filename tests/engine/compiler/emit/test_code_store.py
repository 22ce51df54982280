"""Machine code on disk: what is kept, what is trusted, and what a new process makes of it."""

import errno
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from engine.compiler.emit import code_store as module
from engine.compiler.emit import jit
from engine.compiler.emit.code_store import CodeStore, code_folder, code_key
from engine.compiler.emit.jit import KernelCache
from engine.compiler.emit.target import Target, host_target
from engine.compiler.kernels.softmax import SoftmaxKernel
from tests.engine.compiler.damage import damaged_at
from tests.engine.compiler.tiny import Follow

KERNEL = SoftmaxKernel(
    length=10,
    x_step=1,
    out_step=1,
    shape=(1,),
    x_strides=(10,),
    out_strides=(10,),
    is_log=False,
    skip_masked=False,
)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"KUIPER_CACHE": "/named", "HOME": "/home/me"}, Path("/named")),
        ({"KUIPER_CACHE": "", "HOME": "/home/me"}, None),
        ({"XDG_CACHE_HOME": "/caches", "HOME": "/home/me"}, Path("/caches/kuiper")),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, Path("/home/me/.cache/kuiper")),
        ({}, None),
    ],
)
def test_folder_is_that_of_the_user_unless_named(environment: dict[str, str], folder: Path | None) -> None:
    assert code_folder(environment) == folder


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "new" / "folder")
    assert store.load("key") is None
    store.save("key", b"code")
    assert store.load("key") == b"code"
    assert CodeStore(tmp_path / "new" / "folder").load("key") == b"code"
    assert (tmp_path / "new" / "folder").stat().st_mode & 0o777 == 0o700


def test_a_copy_has_no_name(tmp_path: Path) -> None:
    mapped = CodeStore(tmp_path / "new").copy([b"some ", b"bytes"])
    assert mapped is not None
    assert mapped[:] == b"some bytes"
    assert list((tmp_path / "new").iterdir()) == []
    assert CodeStore(None).copy([b"some"]) is None
    assert CodeStore(tmp_path).copy([]) is None


def test_a_copy_that_the_disk_has_no_room_for_is_none(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"some"
        raise OSError(errno.ENOSPC, "no space left")

    assert CodeStore(tmp_path).copy(parts()) is None
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_not_used(tmp_path: Path) -> None:
    store = CodeStore(tmp_path)
    store.save("key", b"machine code")
    (file,) = tmp_path.iterdir()
    sound = file.read_bytes()
    for damaged in (b"", sound[:-1], damaged_at(sound, -1), damaged_at(sound, 0)):
        file.write_bytes(damaged)
        assert store.load("key") is None
    store.save("key", b"machine code")
    assert store.load("key") == b"machine code"


def test_what_others_may_have_written_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    CodeStore(folder).save("key", b"code")
    (file,) = folder.iterdir()
    file.chmod(0o666)
    assert CodeStore(folder).load("key") is None
    file.chmod(0o644)
    assert CodeStore(folder).load("key") == b"code"
    folder.chmod(0o777)
    assert CodeStore(folder).load("key") is None
    CodeStore(folder).save("other", b"code")
    assert list(folder.iterdir()) == [file]


def test_files_of_other_users_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CodeStore(tmp_path).save("key", b"code")
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    expected = b"code" if owner == 0 else None  # root could write anything anyway
    assert CodeStore(tmp_path).load("key") == expected


def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    store = CodeStore(folder)
    store.save("key", b"code")
    (file,) = folder.iterdir()
    elsewhere = file.rename(tmp_path / "elsewhere")
    file.symlink_to(elsewhere)
    assert store.load("key") is None
    file.unlink()
    os.mkfifo(file, 0o644)
    assert store.load("key") is None


def test_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = CodeStore(tmp_path / "file" / "cache")
    store.save("key", b"code")
    assert store.load("key") is None
    assert CodeStore(None).load("key") is None


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), OSError(errno.EROFS, "read-only")])
def test_what_is_there_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    CodeStore(tmp_path).save("key", b"code")
    store = CodeStore(tmp_path)

    def fail(**_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(tempfile, "mkstemp", fail)
    store.save("other", b"code")
    assert store.folder is None
    assert store.load("key") == b"code"
    assert store.is_on


def test_a_disk_that_fills_up_leaves_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CodeStore(tmp_path)

    def fail(self: Path, mode: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Path, "chmod", fail)
    store.save("key", b"code")
    assert not list(tmp_path.iterdir())
    assert store.load("key") is None


def test_old_code_makes_room(tmp_path: Path) -> None:
    store = CodeStore(tmp_path, max_bytes=1000)
    for index in range(40):
        store.save(f"key{index:02}", bytes(68))
        (tmp_path / f"key{index:02}.code").touch()
        os.utime(tmp_path / f"key{index:02}.code", ns=(index, index))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000
    assert store.load("key39") is not None
    assert store.load("key00") is None


def test_what_other_processes_wrote_counts(tmp_path: Path) -> None:
    """Each of three fills a half of the room: none of them alone sees that there is too little of it."""
    stores = [CodeStore(tmp_path, max_bytes=16_000) for _ in range(3)]
    for place, store in enumerate(stores):
        store.save(f"first{place}", bytes(68))
    for place, store in enumerate(stores):
        for index in range(80):
            store.save(f"key{place}{index}", bytes(68))
            assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 17_000


def test_what_a_process_left_that_was_killed_is_cleared_away(tmp_path: Path) -> None:
    names = ("tmpold", "tmpnew")
    for name in names:
        (tmp_path / name).write_bytes(bytes(10))
    os.utime(tmp_path / "tmpold", (0, 0))
    CodeStore(tmp_path).save("key", b"code")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key.code", "tmpnew"]


def test_many_threads_save_the_same(tmp_path: Path) -> None:
    code = bytes(range(256)) * 100

    def save_and_load(_: int) -> bool:
        store = CodeStore(tmp_path)
        store.save("key", code)
        return store.load("key") == code

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(save_and_load, range(64)))
    assert [path.name for path in tmp_path.iterdir()] == ["key.code"]


def test_kernels_are_compiled_once_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    write = jit._write

    def count(kernel: jit.Kernel, target: Target, name: str) -> str:
        compiled.append(kernel)
        return write(kernel, target, name)

    monkeypatch.setattr(jit, "_write", count)
    for _ in range(2):
        code = KernelCache(CodeStore(tmp_path)).compile(KERNEL, host_target())
        assert code.address
    assert compiled == [KERNEL]


def test_kernels_from_outside_are_not_kept(tmp_path: Path) -> None:
    assert KernelCache(CodeStore(tmp_path)).compile(Follow(previous=3, chunks=1), host_target()).address
    assert not list(tmp_path.iterdir())


def test_keys_distinguish_kernels_targets_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {code_key("a"), code_key("b")}
    monkeypatch.setattr(module, "llvm_versions", lambda: "another")
    keys.add(code_key("a"))
    monkeypatch.setattr(module, "_source_digest", lambda: "another")
    keys.add(code_key("a"))
    assert len(keys) == 4


def test_source_that_changed_after_it_was_imported_shares_no_code(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("width = 4")
    written = (tmp_path / "kernel.py").stat().st_ctime_ns
    before = module._digest_of(tmp_path, written + 1)
    assert module._digest_of(tmp_path, written + 1) == before
    late = {module._digest_of(tmp_path, written) for _ in range(2)}
    assert len(late | {before}) == 3, "this process may run what the file held before"
    (tmp_path / "kernel.py").write_text("width = 8")
    assert module._digest_of(tmp_path, time.time_ns() + 1) != before


RUN = """
import sys
import numpy as np
from engine import RuntimeGraph
graph = RuntimeGraph(sys.argv[1])
graph.build()
pictures = np.linspace(0, 1, 2 * 28 * 28, dtype="f4").reshape(2, 1, 28, 28)
pictures = np.linspace(0, 1, 2 * 28 * 28, dtype="f4").reshape(2, 1, 28, 28)
(result,) = graph.run({graph.inputs[0].operand: pictures}).outputs
print(result.tobytes().hex())
"""


def test_processes_with_and_without_kept_code_compute_the_same(tmp_path: Path) -> None:
    param = next((Path(__file__).parents[4] / "models/digits").rglob("*.param"))
    results, counts = set(), []
    for folder in ("", str(tmp_path), str(tmp_path)):
        environment = os.environ | {"KUIPER_CACHE": folder, "KUIPER_BACKEND": "native"}
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(param)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        results.add(done.stdout)
        counts.append(len(list(tmp_path.iterdir())))
    assert len(results) == 1
    assert counts[0] == 0 < counts[1] == counts[2]


def test_eight_processes_at_once_fill_an_empty_folder(tmp_path: Path) -> None:
    param = next((Path(__file__).parents[4] / "models/digits").rglob("*.param"))
    environment = os.environ | {"KUIPER_CACHE": str(tmp_path / "cache"), "KUIPER_BACKEND": "native"}
    command = [sys.executable, "-c", RUN, str(param)]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    results = [process.communicate(timeout=300) for process in processes]
    assert {process.returncode for process in processes} == {0}, results
    assert len({printed for printed, _ in results}) == 1
    assert {path.suffix for path in (tmp_path / "cache").rglob("*.*")} == {".code", ".verified", ".weights"}
