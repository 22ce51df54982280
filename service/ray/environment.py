"""The variables that Ray's processes need to run HAProxy before the replicas, and to replay requests in flight."""

_BUFFER_BYTES = (1 << 20) + (64 << 10)
"""The largest body that is sent to another replica where one ends before it responds; and its head, and what HAProxy
notes and keeps free in its buffers. Each connection in use may take three times as much memory of the proxy."""
_KEPT_BYTES = 32 << 20
"""Memory that HAProxy has given back and that the C library keeps for its next buffers."""


def environment() -> dict[str, str]:
    """Return the variables that `ray start` has to find on every node.

    Where nodes are started without them, `ray.init(runtime_env={"env_vars": ...})` hands them to Ray Serve as well.

    HAProxy can replay only a request that it has whole when it first sends it on, which `http-buffer-request` waits
    for. Ray has no variable for that option, but writes the one for `retry-on` into the section of defaults as it is.
    Each request allocates large buffers. The C library (mallopt(3)) would have the system map and clear them each
    time, which takes six times as long as all else that HAProxy does; Ray has no variable for HAProxy's own cache.
    """
    return {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",  # it blocks no loop, and hops cost half a millisecond
        "RAY_SERVE_HAPROXY_TIMEOUT_CONNECT_S": "2",  # replicas are near: a slow connection is a lost node
        "RAY_SERVE_HAPROXY_TIMEOUT_SERVER_S": "120",  # longer than any request takes, as `timeout` has it
        "RAY_SERVE_HAPROXY_TIMEOUT_CLIENT_S": "60",
        "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": "1s",
        "RAY_SERVE_HAPROXY_OBSERVE_ERROR_LIMIT": "1",  # a replica that refuses a connection has ended
        "RAY_SERVE_HAPROXY_RETRY_ON": "conn-failure empty-response\n    option http-buffer-request",
        "RAY_SERVE_HAPROXY_TUNE_BUFSIZE": str(_BUFFER_BYTES),
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "10",  # every proxy hears first of a replica that is to end
        "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1",
        "MALLOC_MMAP_THRESHOLD_": str(2 * _BUFFER_BYTES),
        "MALLOC_TRIM_THRESHOLD_": str(_KEPT_BYTES),
    }
