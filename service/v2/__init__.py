"""The Open Inference Protocol (v2), as Triton and its clients use it: requests to arrays, results to answers.

`V2Exchange` is one inference request and its answer; functions such as `describe_model` make the other answers. The
routes are in `service.api.v2`.
"""
