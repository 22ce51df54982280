"""The Open Inference Protocol (v2), as Triton and its clients speak it: bytes to arrays, results to bytes.

`Exchange` is one inference request and its answer; `describe_model` and its like are what the other calls answer.
Nothing here knows of the framework; the calls themselves are in `service.routes.v2`.
"""
