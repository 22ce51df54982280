"""A Ray cluster of several raylets on 127.0.0.1, and what serves in it."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.ray import build, environment
from tests.bench.service.server import ROOT, free_port

WAIT_SECONDS = 150.0
"""Longest time for anything to happen; machines that test other things as well take long."""
MODELS = ROOT / "models"
_MEMORY = {"object_store_memory": 80 << 20}
_FILES = {
    "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": "haproxy.cfg",
    "RAY_SERVE_HAPROXY_SOCKET_PATH": "admin.sock",
    "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": "",
    "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": "server-state",
    "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": "metrics.sock",
}
_PORTS = (
    "RAY_SERVE_HAPROXY_METRICS_PORT",
    "RAY_SERVE_HAPROXY_STATS_PORT",
    "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT",
)


def variables(folder: Path, drain_seconds: float = 4.0) -> dict[str, str]:
    """Return what the processes of a cluster find in their environment."""
    return (
        environment(drain_seconds=drain_seconds)
        | {name: str(folder / file) for name, file in _FILES.items()}
        | {name: str(free_port()) for name in _PORTS}
        | {
            "KUIPER_CACHE": str(folder / "cache"),
            "PYTHONPATH": str(ROOT),
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's way to say 127.0.0.1
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_raylet_start_wait_time_s": f"{WAIT_SECONDS:.0f}",
        }
    )


@dataclass
class RayCluster:
    """A head without CPUs, and nodes that replicas run on.

    Attributes:
        port: where the ingress listens.
        cluster: Ray's own.
        nodes: the nodes besides the head, oldest first.
    """

    port: int
    cluster: Any
    nodes: list[Any] = field(default_factory=list)

    def add_node(self, cpus: int = 1) -> Any:
        """Start a raylet, and wait until it has joined."""
        node = self.cluster.add_node(num_cpus=cpus, node_ip_address="127.0.0.1", wait=True, **_MEMORY)
        self.nodes.append(node)
        return node

    def lose_node(self, node: Any) -> None:
        """Kill a raylet and all that it has started."""
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)

    @contextmanager
    def serving(self, name: str = "kuiper", prefix: str = "/", **arguments: Any) -> Iterator[None]:
        """Have an application run while the context lasts."""
        from ray import serve

        self.run(name, prefix, **arguments)
        try:
            yield
        finally:
            serve.delete(name)

    def run(self, name: str = "kuiper", prefix: str = "/", **arguments: Any) -> None:
        """Deploy an application, anew where it runs already, and wait until it does."""
        from ray import serve

        serve.run(build({"models": str(MODELS / "digits")} | arguments), name=name, route_prefix=prefix)
        count = arguments.get("deployment", {}).get("num_replicas", 1)
        wait_until(lambda: len(self.replicas(name)) >= count, f"{count} replicas of {name}")

    def replicas(self, name: str = "kuiper") -> list[Mapping[str, Any]]:
        """Return the running replicas of an application: `pid`, `node_id` and more of each."""
        from ray.serve.context import _get_global_client

        details = _get_global_client().get_serve_details()["applications"]
        deployments = details[name]["deployments"].values() if name in details else ()
        return [
            replica
            for deployment in deployments
            for replica in deployment["replicas"]
            if replica["state"] == "RUNNING"
        ]


@contextmanager
def ray_cluster(nodes: int, cpus: int = 1) -> Iterator[RayCluster]:
    """Run a cluster while the context lasts; nothing of it is left behind, whatever happens in between."""
    folder = Path(tempfile.mkdtemp(prefix="kuiper-ray-"))
    before = dict(os.environ)
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _exit))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(_restore, before)
        stack.callback(_end_proxies, folder)
        os.environ.update(variables(folder))
        yield _start(stack, folder, nodes, cpus)


def _start(stack: ExitStack, folder: Path, nodes: int, cpus: int) -> RayCluster:
    """Start what `ray_cluster` runs. Ray reads the environment when it is imported."""
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    head = {
        "num_cpus": 0,
        "include_dashboard": False,
        "node_ip_address": "127.0.0.1",
        "temp_dir": str(folder),
        **_MEMORY,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    stack.callback(cluster.shutdown)
    started = RayCluster(free_port(), cluster)
    for _ in range(nodes):
        started.add_node(cpus)
    ray.init(address=cluster.address, log_to_driver=False)
    stack.callback(ray.shutdown)
    stack.callback(serve.shutdown)
    serve.start(http_options={"host": "127.0.0.1", "port": started.port}, proxy_location="HeadOnly")
    return started


def wait_until(is_so: Callable[[], bool], what: str) -> float:
    """Wait for something; returns how many seconds it took.

    Raises:
        TimeoutError: it has not happened.
    """
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > WAIT_SECONDS:
            raise TimeoutError(f"{what}: not after {WAIT_SECONDS:g} s")
        time.sleep(0.1)
    return time.monotonic() - began


def _exit(*_: object) -> None:
    """End by an exception, so that what was started is ended as well."""
    sys.exit(1)


def _restore(before: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


def _end_proxies(folder: Path) -> None:
    """End the HAProxy processes of this cluster, which outlive their manager where that was killed."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended meanwhile
        if b"haproxy" in command[0] and any(str(folder).encode() in part for part in command):
            os.kill(int(path.parent.name), signal.SIGKILL)
