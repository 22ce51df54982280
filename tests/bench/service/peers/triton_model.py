"""Triton's model: the requests that come together are run as one batch."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import triton_python_backend_utils as triton

from tests.bench.service.peers.session import Session


class TritonPythonModel:
    """Arrays in, scores out."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the model: that of any number of rows if Triton is to batch."""
        batched = json.loads(args["model_config"])["max_batch_size"] > 1
        self._session = Session("batched.onnx" if batched else "model.onnx")

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer requests, in their order."""
        arrays = [triton.get_input_tensor_by_name(request, "0").as_numpy() for request in requests]
        scores = self._session.run(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))
        responses, first = [], 0
        for array in arrays:
            last = first + len(array)
            responses.append(triton.InferenceResponse([triton.Tensor("scores", scores[first:last])]))
            first = last
        return responses
