"""A server in a process of its own: over HTTP and gRPC the same users get the same versions."""

from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import tritonclient.grpc as triton
import tritonclient.http as triton_http

from tests.service.grpc.servers import grpc_address
from tests.service.server.process import ServerProcess

TABLE = (
    '[traffic]\nweights = {"2" = 90, "3" = 10}\nsticky = "X-User"\nshadow = {version = "1", share = 0.5}\n'
)
FLAGS = ("--no-warm-up", "--grpc-port", "0", "--workers", "2")


def test_http_and_grpc_lead_a_user_to_the_same_version(root: Path) -> None:
    (root / "m/model.toml").write_text(TABLE.replace("90", "50").replace("10", "50"))
    users = [f"user-{number}" for number in range(30)]
    array = np.array([[1, 2, 3]], np.float32)
    with ServerProcess("--models", str(root), *FLAGS) as server:
        over_http, over_grpc = {}, {}
        with triton_http.InferenceServerClient(urlsplit(server.url).netloc) as client:
            given = triton_http.InferInput("in", array.shape, "FP32")
            given.set_data_from_numpy(array)
            for user in users:
                response = client.infer("m", [given], headers={"X-User": user})
                over_http[user] = response.get_response()["model_version"]
        with triton.InferenceServerClient(grpc_address(server)) as client:
            sent = triton.InferInput("in", array.shape, "FP32")
            sent.set_data_from_numpy(array)
            for user in users:
                over_grpc[user] = (
                    client.infer("m", [sent], headers={"x-user": user}).get_response().model_version
                )
            unnamed = Counter(client.infer("m", [sent]).get_response().model_version for _ in range(20))
            named = client.infer("m", [sent], model_version="1").get_response().model_version
    assert over_http == over_grpc
    assert set(over_http.values()) == {"2", "3"}
    assert set(unnamed) == {"2", "3"}
    assert named == "1"


def test_thousands_of_requests_are_split_ninety_to_ten(root: Path) -> None:
    (root / "m/model.toml").write_text(TABLE)
    array = np.array([[1, 2, 3]], np.float32)
    with (
        ServerProcess("--models", str(root), *FLAGS) as server,
        triton_http.InferenceServerClient(urlsplit(server.url).netloc) as client,
    ):
        given = triton_http.InferInput("in", array.shape, "FP32")
        given.set_data_from_numpy(array)
        seen = Counter(client.infer("m", [given]).get_response()["model_version"] for _ in range(2000))
    assert abs(seen["3"] - 200) <= 20
    assert seen["2"] + seen["3"] == 2000
