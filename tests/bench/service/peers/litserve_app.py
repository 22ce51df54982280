"""LitServe: one process for each worker. It takes JSON; bytes and images come in base64."""

# mypy: disallow-subclassing-any=False

import base64
from typing import Any

import litserve

from tests.bench.service.peers.session import PORT, WORKERS, Array, Session


class Api(litserve.LitAPI):
    """Numbers, bytes or an encoded image in, numbers out."""

    def setup(self, device: str) -> None:
        """Load the model."""
        self.session = Session()

    def decode_request(self, request: dict[str, Any]) -> Array:
        """Return the input of a request."""
        if "data" in request:
            return self.session.from_numbers(request["data"])
        if "bytes" in request:
            return self.session.from_bytes(base64.b64decode(request["bytes"]))
        return self.session.from_image(base64.b64decode(request["image"]))

    def predict(self, array: Array) -> Array:
        """Return the scores."""
        return self.session.run(array)

    def encode_response(self, output: Array) -> dict[str, Any]:
        """Return the response."""
        return {"data": output.tolist()}


if __name__ == "__main__":
    server = litserve.LitServer(
        Api(), accelerator="cpu", workers_per_device=WORKERS, fast_queue=True, healthcheck_path="/ready"
    )
    server.run(host="127.0.0.1", port=PORT, generate_client_file=False, log_level="warning", access_log=False)
