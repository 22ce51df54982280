"""Ray Serve: nothing fails while replicas and nodes are lost, redeployed, added and taken away.

Ray is imported in `tests/cluster/ray_cluster.py`, after the variables are set that it reads when it is imported.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection, RemoteDisconnected

import numpy as np
import pytest
import yaml

from tests.bench.service.server import MeasuredServer, free_port
from tests.cluster.load import Load, ask, binary_request, digits_request, load_on
from tests.cluster.ray_cluster import MODELS, Application, RayCluster, quiet_port, ray_cluster, wait_until
from tests.golden.digits import ROWS, pictures, probabilities

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own

SMALL, MEDIUM, LARGE = 1, 300, 1000
"""Rows of 3136 bytes: 3 KB, just below 1 MiB, and 3 MB."""
_TWO_REPLICAS = {"num_replicas": 2, "max_replicas_per_node": 1, "health_check_period_s": 1.0}
TWO = Application(options=_TWO_REPLICAS)
"""What most tests need: each leaves it to the next as it was, which saves starting and ending replicas for each."""
GRPC_PORT = quiet_port()
SINGLE = Application(
    {"queue_size": 0, "workers": 1, "grpc_port": GRPC_PORT},
    {"num_replicas": 1, "max_replicas_per_node": 1},
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(nodes=2) as started:
        yield started


@pytest.fixture(scope="module")
def responses() -> dict[int, bytes]:
    """What a plain server answers: the outputs of requests, by their rows."""
    port = free_port()
    flags = ["--models", str(MODELS / "digits"), "--port", str(port)]
    command = [sys.executable, "-m", "service.cli", "serve", *flags]
    with MeasuredServer(command, port, "/readyz"):
        return {rows: _outputs(port, rows) for rows in (SMALL, MEDIUM, LARGE)}


def _outputs(port: int, rows: int, path: str = "/v2/models/digits/infer") -> bytes:
    """Return the outputs of a request, in binary at the end of its response."""
    status, body = ask(port, digits_request(rows, path))
    assert status == 200, body
    return body[-rows * 40 :]


def test_responses_are_those_of_a_plain_server_and_of_pytorch(
    cluster: RayCluster, responses: dict[int, bytes]
) -> None:
    cluster.have(TWO)
    for rows, wanted in responses.items():
        assert {_outputs(cluster.port, rows) for _ in range(8)} == {wanted}
    status, body = ask(cluster.port, binary_request(pictures()))
    assert status == 200, body
    given = np.frombuffer(body[-ROWS * 40 :], np.float32).reshape(ROWS, 10)
    np.testing.assert_allclose(given, probabilities(), rtol=1e-4, atol=1e-6)


def test_killed_replicas_cost_no_request(cluster: RayCluster, responses: dict[int, bytes]) -> None:
    connections, kills = 4, 2
    cluster.have(TWO)
    with ExitStack() as stack:
        loads = {
            rows: stack.enter_context(load_on(cluster.port, digits_request(rows), wanted, connections))
            for rows, wanted in responses.items()
        }
        for _ in range(kills):
            _wait_for_each(loads)
            _kill_one(cluster)
            _wait_for_each(loads)
    for rows, load in loads.items():
        # bodies that the proxy cannot hold are lost with the replica that was reading them
        lost = kills * connections if rows == LARGE else 0
        assert len(load.failures) <= lost, load.failures[:5]


def _wait_for_each(loads: dict[int, Load]) -> None:
    for load in loads.values():
        load.wait_for(20)


def _kill_one(cluster: RayCluster) -> None:
    """Kill one of two replicas, and wait until another has taken its place."""
    before = {replica["pid"] for replica in cluster.replicas()}
    assert len(before) == 2
    os.kill(min(before), signal.SIGKILL)
    wait_until(lambda: _new_of(cluster, before) == 1 and len(cluster.replicas()) == 2, "a new replica")


def _new_of(cluster: RayCluster, before: set[int]) -> int:
    return len({replica["pid"] for replica in cluster.replicas()} - before)


def test_a_lost_node_costs_no_request_and_its_replica_comes_back_with_another(
    cluster: RayCluster, responses: dict[int, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.have(TWO)
    with load_on(cluster.port, digits_request(SMALL), responses[SMALL]) as load:
        load.wait_for(20)
        cluster.lose_node(cluster.nodes[-1])
        wait_until(lambda: len(cluster.replicas()) == 1, "the loss to be noticed")
        load.wait_for(100)
        node = cluster.add_node()
        seconds = wait_until(
            lambda: node.node_id in {replica["node_id"] for replica in cluster.replicas()},
            "a replica on the new node",
        )
        load.wait_for(100)
    with capsys.disabled():
        print(f"\na replica runs {seconds:.1f} s after its node has joined")
    assert not load.failures, load.failures[:5]


def test_a_redeployment_costs_no_request(cluster: RayCluster, responses: dict[int, bytes]) -> None:
    cluster.have(TWO)
    before = {replica["pid"] for replica in cluster.replicas()}
    idle = HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    assert _status(idle) == 200
    with load_on(cluster.port, digits_request(SMALL), responses[SMALL]) as load:
        load.wait_for(100)
        cluster.run(Application({"queue_size": 65}, _TWO_REPLICAS))
        wait_until(lambda: _new_of(cluster, before) == 2, "two new replicas")
        load.wait_for(100)
    assert not load.failures, load.failures[:5]
    try:
        assert _status(idle) == 200  # by a proxy that knew the old replicas only
    except (BrokenPipeError, ConnectionResetError, RemoteDisconnected):
        idle.close()  # idle for so long on a busy machine that the proxy has closed it
        assert _status(idle) == 200
    idle.close()


def _status(connection: HTTPConnection) -> int:
    request = digits_request(1)
    connection.request(
        "POST", request.path, request.body, request.headers | {"X-Request-ID": "of-the-client"}
    )
    response = connection.getresponse()
    response.read()
    assert response.msg.get_all("X-Request-ID") == ["of-the-client"]
    return response.status


def test_errors_are_the_servers_own(cluster: RayCluster) -> None:
    cluster.have(SINGLE)
    status, body = ask(cluster.port, digits_request(1, "/v2/models/nothing/infer"))
    assert status == 404
    assert "nothing" in json.loads(body)["error"]
    with load_on(cluster.port, digits_request(100), b"", connections=12) as load:
        wait_until(lambda: len(load.failures) >= 20, "refusals")
        load.wait_for(20)  # a queue that is full refuses, and nothing else does
    assert {failure[:3] for failure in load.failures} == {"503"}
    assert all("queue" in failure for failure in load.failures), load.failures[:3]


def test_replicas_response_grpc_at_their_nodes(cluster: RayCluster) -> None:
    import grpc

    cluster.have(SINGLE)
    with grpc.insecure_channel(f"127.0.0.1:{GRPC_PORT}") as channel:
        is_ready = channel.unary_unary("/inference.GRPCInferenceService/ServerReady")
        assert is_ready(b"", timeout=60) == b"\x08\x01"  # field 1, true


def test_replicas_follow_the_load(cluster: RayCluster, responses: dict[int, bytes]) -> None:
    delays = {"upscale_delay_s": 0.5, "downscale_delay_s": 1.0, "look_back_period_s": 10.5}
    scaling = {"min_replicas": 1, "max_replicas": 2, "target_ongoing_requests": 2, **delays}
    cluster.have(Application(options={"autoscaling_config": scaling, "max_replicas_per_node": 1}))
    with load_on(cluster.port, digits_request(SMALL), responses[SMALL], connections=1) as load:
        load.wait_for(20)
        assert len(cluster.replicas()) == 1
        with load_on(cluster.port, digits_request(100), b"", connections=8) as more:
            wait_until(lambda: len(cluster.replicas()) == 2, "a second replica")
            more.wait_for(50)
        wait_until(lambda: len(cluster.replicas()) == 1, "one replica again")
        load.wait_for(50)
    assert not load.failures, load.failures[:5]
    assert not more.failures, more.failures[:5]


def test_each_model_is_an_application_below_a_prefix(
    cluster: RayCluster, responses: dict[int, bytes]
) -> None:
    path = "/v2/models/digits"
    half = {"ray_actor_options": {"num_cpus": 0.5}}
    cluster.have(Application({}, half, "own", path), Application({}, half, "mounted", "/numbers"))
    wait_until(lambda: _responses(cluster.port, f"{path}/infer", "/numbers/readyz"), "both applications")
    assert _outputs(cluster.port, SMALL, f"{path}/infer") == responses[SMALL]
    assert _outputs(cluster.port, SMALL, f"/numbers{path}/infer") == responses[SMALL]
    assert ask(cluster.port, digits_request(SMALL, "/infer?model=digits"))[0] == 404


def test_the_file_of_the_guide_is_deployed(cluster: RayCluster, responses: dict[int, bytes]) -> None:
    from ray.serve.context import _get_global_client
    from ray.serve.schema import ServeDeploySchema

    page = (MODELS.parent / "docs/guides/ray.md").read_text(encoding="utf-8")
    (text,) = (block for block in page.split("```text\n") if block.startswith("# kuiper.yaml"))
    file = yaml.safe_load(text.partition("```")[0])
    file["applications"][0]["args"]["models"] = str(MODELS / "digits")  # nodes have folders of their own
    file.pop("http_options")  # the ingress is there already
    cluster.have()  # nothing of other tests
    try:
        _get_global_client().deploy_apps(ServeDeploySchema(**file))
        wait_until(lambda: len(cluster.replicas()) == 2, "two replicas")
        wait_until(lambda: ask(cluster.port, digits_request(SMALL))[0] == 200, "its route")
        assert _outputs(cluster.port, SMALL) == responses[SMALL]
    finally:
        cluster.delete("kuiper")


def _responses(port: int, *paths: str) -> bool:
    return all(ask(port, digits_request(1, path))[0] in (200, 405) for path in paths)
