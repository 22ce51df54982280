"""Variables that Kubernetes sets for its services, and that look like settings."""


def is_service_link(name: str, value: object) -> bool:
    """Return whether Kubernetes set a variable: it sets `KUIPER_PORT` for a service that is called kuiper."""
    return name == "port" and isinstance(value, str) and value.startswith(("tcp://", "udp://", "sctp://"))
