"""What Ray Serve's ingress adds to the time of a request: a replica of a cluster against a server of its own.

Run: python -m tests.bench.ray [--rounds N] [--seconds N], in an environment with the extra [ray], such as .venv-cluster

Both run the digits with one worker on one thread, and are asked alternately by wrk on one connection. The times are
medians of a round, the least of all rounds: whatever else the machine does only adds to them.
Responses are compared too.
"""

import argparse
import sys
from collections.abc import Mapping

from tests.bench.service.load import measure
from tests.bench.service.server import MeasuredServer, free_port
from tests.cluster.load import Ask, ask, digits_request
from tests.cluster.ray_cluster import MODELS, Application, ray_cluster

ROWS = (1, 100)
"""Rows of a request, 3136 bytes each."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    parser.add_argument("--seconds", type=int, default=1, metavar="N")
    arguments = parser.parse_args()
    port = free_port()
    flags = ["--models", str(MODELS / "digits"), "--workers", "1", "--threads", "1"]
    command = [
        sys.executable,
        "-m",
        "service.cli",
        "serve",
        "--port",
        str(port),
        "--log-level",
        "warning",
        *flags,
    ]
    with MeasuredServer(command, port, "/readyz"), ray_cluster(nodes=1) as cluster:
        cluster.run(Application({"workers": 1, "threads": 1, "log_level": "warning"}))
        ports = {"alone": port, "in Ray": cluster.port}
        print(f"{'median ms':<12}{'alone':>10}{'in Ray':>10}{'more':>10}{'responses':>12}")
        for rows in ROWS:
            report(ports, digits_request(rows), rows, arguments)


def report(ports: Mapping[str, int], request: Ask, rows: int, arguments: argparse.Namespace) -> None:
    """Measure one request, and print its line of the table."""
    same = len({ask(port, request)[1][-rows * 40 :] for port in ports.values()}) == 1
    times: dict[str, list[float]] = {name: [] for name in ports}
    for _ in range(arguments.rounds):
        for name, port in ports.items():
            raw = raw_request(request, port)
            times[name].append(measure(f"http://127.0.0.1:{port}", raw, 1, arguments.seconds).p50)
    alone, clustered = (min(times[name]) for name in ports)
    responses = "bit-equal" if same else "DIFFERENT"
    print(
        f"{f'{rows} rows':<12}{alone:>10.2f}{clustered:>10.2f}{clustered - alone:>10.2f}{responses:>12}",
        flush=True,
    )


def raw_request(request: Ask, port: int) -> bytes:
    """Return what is sent for a request, head and body."""
    headers = request.headers | {"Host": f"127.0.0.1:{port}", "Content-Length": str(len(request.body))}
    lines = [f"POST {request.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode() + request.body


if __name__ == "__main__":
    main()
