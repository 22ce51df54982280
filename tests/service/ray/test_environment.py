"""The variables of Ray's processes."""

import subprocess
import sys

from service.ray import environment


def test_haproxy_is_on_and_replays() -> None:
    variables = environment()
    assert variables["RAY_SERVE_ENABLE_HA_PROXY"] == "1"
    assert "empty-response" in variables["RAY_SERVE_HAPROXY_RETRY_ON"].splitlines()[0].split()
    assert "option http-buffer-request" in variables["RAY_SERVE_HAPROXY_RETRY_ON"]
    buffer = int(variables["RAY_SERVE_HAPROXY_TUNE_BUFSIZE"])
    assert buffer > 1 << 20
    assert buffer < int(variables["MALLOC_MMAP_THRESHOLD_"]) < int(variables["MALLOC_TRIM_THRESHOLD_"])
    assert all(isinstance(value, str) and value for value in variables.values())


def test_the_command_prints_what_a_shell_reads() -> None:
    script = 'eval "$("$0" -m service.ray)"; env -0'
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable], capture_output=True, text=True, check=True
    )
    read = dict(line.partition("=")[::2] for line in done.stdout.split("\0") if "=" in line)
    assert {name: read[name] for name in environment()} == environment()


def test_ray_is_imported_by_nothing_but_build() -> None:
    script = "import sys, service.commands.serve; from service.ray import environment; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"ray", "service.ray.replica"} & set(done.stdout.split())
