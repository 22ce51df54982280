"""The Open Inference Protocol (v2), as Triton and its clients use it: requests to arrays, results to responses.

`V2Exchange` is one inference request and its response; functions such as `describe_model` make the other responses. The
routes are in `service.api.v2`.
"""
