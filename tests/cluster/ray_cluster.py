"""A Ray cluster of several raylets on 127.0.0.1, and what serves in it."""

import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.ray import application as ray_application
from service.ray import environment
from tests.bench.service.server import ROOT

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
_PERIOD = {
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",  # a proxy that is killed as it starts slowly fails `serve.start`
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "120",
    "RAY_SERVE_HAPROXY_STARTUP_TIMEOUT_S": "120",
    "RAY_SERVE_HAPROXY_TIMEOUT_CLIENT_S": "600",  # idle connections are to outlast a redeployment
    "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": "600",
    "RAY_SERVE_HAPROXY_MAXCONN": "256",  # for more, there have to be more descriptors than some systems give a user
    "RAY_health_check_timeout_ms": "60000",  # of a node that is slow; one that was killed refuses, and five times
    "RAY_health_check_period_ms": "1000",  # in a row, this far apart, make it lost
    "RAY_memory_monitor_refresh_ms": "0",  # what else runs on the machine may take its memory
}
"""Ray takes what is slow for dead, and kills it; machines that test other things as well are slow."""
_LONGEST_FOLDER = 17
"""Letters of the folder for temporary files: paths of sockets have at most 107, and the rest of Ray's has up to 90."""
_PORTS = (
    "RAY_SERVE_HAPROXY_METRICS_PORT",
    "RAY_SERVE_HAPROXY_STATS_PORT",
    "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT",
)
_CANDIDATES = iter(random.sample(range(20_000, 30_000), 1_000))


def quiet_port() -> int:
    """Return a port that nobody listens on, and none twice.

    It lies below those that systems choose by themselves: a cluster has them choose hundreds before this one is used.
    Replicas take those from 30000 on.
    """
    for port in _CANDIDATES:
        with socket.socket() as listener:
            try:
                listener.bind(("", port))
            except OSError:
                continue  # it is in use
            return port
    raise RuntimeError("no port is free")


def variables(folder: Path, drain_seconds: float = 4.0) -> dict[str, str]:
    """Return what the processes of a cluster find in their environment."""
    return (
        environment()
        | {"RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": f"{drain_seconds:g}"}
        | {name: str(folder / file) for name, file in _FILES.items()}
        | {name: str(quiet_port()) for name in _PORTS}
        | _PERIOD
        | {
            "KUIPER_CACHE": str(folder / "cache"),
            "PYTHONPATH": str(ROOT),
            "RAY_TMPDIR": str(folder),
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's way to say 127.0.0.1
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_raylet_start_wait_time_s": f"{WAIT_SECONDS:.0f}",
        }
    )


@dataclass(frozen=True)
class Application:
    """What is deployed.

    Attributes:
        settings: of the server, besides the models.
        options: of the deployment.
        name: of the application.
        prefix: of its routes.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "kuiper"
    prefix: str = "/"

    @property
    def count(self) -> int:
        """How many replicas it has, or at least has where their number follows the load."""
        number: int = self.options.get("num_replicas", 1)
        return number


@dataclass
class RayCluster:
    """A head without CPUs, and nodes that replicas run on.

    Attributes:
        port: where the ingress listens.
        cluster: Ray's own.
        nodes: the nodes besides the head, oldest first.
        applications: what was deployed and not deleted, by names.
    """

    port: int
    cluster: Any
    nodes: list[Any] = field(default_factory=list)
    applications: dict[str, Application] = field(default_factory=dict)

    def add_node(self, cpus: int = 1) -> Any:
        """Start a raylet, and wait until it has joined."""
        node = self.cluster.add_node(num_cpus=cpus, node_ip_address="127.0.0.1", wait=True, **_MEMORY)
        self.nodes.append(node)
        return node

    def lose_node(self, node: Any) -> None:
        """Kill a raylet and all that it has started."""
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)

    def have(self, *wanted: Application) -> None:
        """Have these applications run and no others; one that runs already stays as it is."""
        self.delete(*(name for name, running in self.applications.items() if running not in wanted))
        for application in wanted:
            if application.name not in self.applications:
                self.run(application)
            self.wait_for_replicas(application)

    def run(self, application: Application) -> None:
        """Deploy an application, again where it runs already, and wait until it does."""
        from ray import serve

        settings = {"models": str(MODELS / "digits")} | dict(application.settings)
        self.applications[application.name] = application
        made = ray_application(settings, **application.options)
        serve.run(made, name=application.name, route_prefix=application.prefix)
        self.wait_for_replicas(application)

    def delete(self, *names: str) -> None:
        """Delete applications, and wait until they have ended."""
        from ray.serve.context import _get_global_client

        for name in names:
            self.applications.pop(name, None)
        _get_global_client().delete_apps(list(names), blocking=False)  # it would wait no longer than a minute
        wait_until(lambda: not self.details().keys() & set(names), f"the end of {names}")

    def wait_for_replicas(self, application: Application) -> None:
        """Wait until the replicas of an application run."""
        name, count = application.name, application.count
        wait_until(lambda: len(self.replicas(name)) >= count, f"{count} replicas of {name}")

    def replicas(self, name: str = "kuiper") -> list[Mapping[str, Any]]:
        """Return the running replicas of an application: `pid`, `node_id` and more of each."""
        details = self.details()
        deployments = details[name]["deployments"].values() if name in details else ()
        return [
            replica
            for deployment in deployments
            for replica in deployment["replicas"]
            if replica["state"] == "RUNNING"
        ]

    def proxies(self) -> list[str]:
        """Return the states of the proxies, as Ray names them: `STARTING`, `HEALTHY` and others."""
        return [proxy["status"] for proxy in _details()["proxies"].values()]

    def details(self) -> Mapping[str, Any]:
        """Return what Ray reports the applications that there are, those that end among them, by names."""
        applications: Mapping[str, Any] = _details()["applications"]
        return applications


def _details() -> Mapping[str, Any]:
    """Return what Ray shows of all that it serves."""
    from ray.serve.context import _get_global_client

    details: Mapping[str, Any] = _get_global_client().get_serve_details()
    return details


@contextmanager
def ray_cluster(nodes: int, cpus: int = 1) -> Iterator[RayCluster]:
    """Run a cluster while the context lasts; nothing of it is left behind, whatever happens in between."""
    usual = tempfile.gettempdir()
    short = usual if len(usual) <= _LONGEST_FOLDER else "/tmp"
    folder = Path(tempfile.mkdtemp(prefix="kuiper-ray-", dir=short))
    before = dict(os.environ)
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _exit))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(_restore, before)
        stack.callback(_end_proxies, folder)
        os.environ.update(variables(folder))
        # where the cluster's address is noted: Ray makes this folder only for clusters that have no folder of their own
        (folder / "ray").mkdir()
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
    started = RayCluster(quiet_port(), cluster)
    for _ in range(nodes):
        started.add_node(cpus)
    ray.init(address=cluster.address, log_to_driver=False)
    stack.callback(ray.shutdown)
    stack.callback(serve.shutdown)
    _start_serve(started)
    return started


def _start_serve(cluster: RayCluster) -> None:
    """Start Serve, and wait until its proxy is ready: Ray's own call waits no longer than a minute."""
    from ray import serve

    options = {"host": "127.0.0.1", "port": cluster.port}
    try:
        serve.start(http_options=options, proxy_location="HeadOnly")
    except TimeoutError:
        serve.start(http_options=options, proxy_location="HeadOnly")  # connects to what starts already
        wait_until(lambda: "HEALTHY" in cluster.proxies(), "a ready proxy")


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
