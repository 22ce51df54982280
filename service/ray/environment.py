"""The variables that Ray's processes need to run HAProxy before the replicas, and to replay requests in flight."""

REPLAYED_BYTES = 1 << 20
"""Bodies up to so many bytes are sent to another replica where one ends before it responds."""
DRAIN_SECONDS = 10.0
"""How long a replica that is to end stays reachable, so that every proxy hears of it first."""
RESPONSE_SECONDS = 120
"""How long a proxy waits for a response; longer than any request takes, as `timeout` has it."""
_HEAD_BYTES = 64 << 10
"""Room beside the body for the head of a request, and for what HAProxy notes and keeps free in its buffers."""
_KEPT_BYTES = 32 << 20
"""Memory that HAProxy has given back and that the C library keeps for its next buffers."""


def environment(
    *,
    replayed_bytes: int = REPLAYED_BYTES,
    drain_seconds: float = DRAIN_SECONDS,
    response_seconds: int = RESPONSE_SECONDS,
) -> dict[str, str]:
    """Return the variables that `ray start` has to find on every node.

    Where nodes are started without them, `ray.init(runtime_env={"env_vars": ...})` hands them to Ray Serve as well.

    Args:
        replayed_bytes: bodies up to so many bytes are replayed; each connection in use may take three times as much
            memory of the proxy. 0: only requests that had not reached a replica are sent to another one.
        drain_seconds: how long a replica that is to end stays reachable.
        response_seconds: how long the proxy waits for a response, whole seconds.

    Raises:
        ValueError: a number is negative, or `response_seconds` is 0.
    """
    if min(replayed_bytes, drain_seconds, response_seconds - 1) < 0:
        raise ValueError("replayed_bytes and drain_seconds are at least 0, response_seconds at least 1")
    return (
        {
            "RAY_SERVE_ENABLE_HA_PROXY": "1",
            "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",  # it blocks no loop, and hops cost half a millisecond
            "RAY_SERVE_HAPROXY_TIMEOUT_CONNECT_S": "2",  # replicas are near: a slow connection is a lost node
            "RAY_SERVE_HAPROXY_TIMEOUT_SERVER_S": str(response_seconds),
            "RAY_SERVE_HAPROXY_TIMEOUT_CLIENT_S": "60",
            "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": "1s",
            "RAY_SERVE_HAPROXY_OBSERVE_ERROR_LIMIT": "1",  # a replica that refuses a connection has ended
            "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": f"{drain_seconds:g}",
            "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1",
            "RAY_SERVE_AUTOSCALING_METRIC_RECORD_INTERVAL_FACTOR": "0.02",  # fifty samples make a mean
        }
        | (_replay(replayed_bytes) if replayed_bytes else {})
    )


def _replay(most: int) -> dict[str, str]:
    """Return what has HAProxy keep requests until they are answered.

    It can replay only a request that it has whole when it first sends it on, which `http-buffer-request` waits for. Ray
    has no variable for that option, but writes the one for `retry-on` into the section of defaults as it is.

    Each request allocates large buffers. The C library (mallopt(3)) would have the system map and clear them each
    time, which takes six times as long as all else that HAProxy does; Ray has no variable for HAProxy's own cache.
    """
    buffer = most + _HEAD_BYTES
    return {
        "MALLOC_MMAP_THRESHOLD_": str(2 * buffer),
        "MALLOC_TRIM_THRESHOLD_": str(max(_KEPT_BYTES, 8 * buffer)),
        "RAY_SERVE_HAPROXY_RETRY_ON": "conn-failure empty-response\n    option http-buffer-request",
        "RAY_SERVE_HAPROXY_TUNE_BUFSIZE": str(buffer),
    }
