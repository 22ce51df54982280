"""Values that the chart has to refuse."""

from collections.abc import Mapping
from typing import Any

from tests.deploy.cases import KEYS, REACHED

REFUSED: tuple[tuple[Mapping[str, Any], str], ...] = (
    ({"replica": 3}, "replica"),
    ({"replicas": "3"}, "replicas"),
    ({"replicas": -1}, "replicas"),
    ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
    ({"image": {"digest": "sha256:12"}}, "digest"),
    ({"models": {"url": "ftp://host/models"}}, "url"),
    ({"models": {"url": "s3://bucket", "existingClaim": "models"}}, "existingClaim"),
    ({"models": {"existingClaim": "models", "image": "team/models"}}, "image"),
    ({"settings": {"worker": 2}}, "worker"),
    ({"settings": {"workers": -1}}, "workers"),
    ({"settings": {"port": 80}}, "port"),
    ({"settings": {"api_keys": "secret"}}, "api_keys"),
    ({"settings": {"log_format": "xml"}}, "log_format"),
    ({"drainDelaySeconds": -1}, "drainDelaySeconds"),
    ({"shutdownMarginSeconds": 1}, "shutdownMarginSeconds"),
    ({"keys": {"existingSecret": "keys", "apiKeys": ""}}, "keys"),
    ({"tls": {"clientCertificates": True}}, "tls"),
    ({"service": {"port": 70000}}, "port"),
    ({"service": {"headless": True, "type": "NodePort"}}, "type"),
    ({"resources": {"limits": {"memory": "1 GB"}}}, "memory"),
    ({"resources": {"limits": {"memory": None}}}, "memory"),
    ({"podDisruptionBudget": {"maxUnavailable": "lots"}}, "maxUnavailable"),
    ({"autoscaling": {"minReplicas": 0}}, "minReplicas"),
    ({"autoscaling": {"enabled": True, "minReplicas": 20}}, "autoscaling.minReplicas is larger"),
    ({"serviceMonitor": {"interval": "soon"}}, "interval"),
    ({"serviceMonitor": {"interval": "9500ms"}}, "scrapeTimeout is longer"),
    ({"serviceMonitor": {"scrapeTimeout": "1m"}}, "scrapeTimeout is longer"),
    ({"serviceMonitor": {"enabled": True}, **KEYS}, "the server asks for keys"),
    (
        {"serviceMonitor": {"enabled": True}, "tls": {"existingSecret": "c", "clientCertificates": True}},
        "certificate",
    ),
    ({"networkPolicy": {"from": [{"pods": {}}]}}, "from"),
    ({"ingress": {"enabled": True}}, "name the ingress controller"),
    ({"ingress": {"hosts": ["https://a.example.org"]}}, "hosts"),
    ({"ingress": {"path": "digits"}}, "path"),
    (
        {
            **REACHED,
            "ingress": {"enabled": True},
            "tls": {"existingSecret": "c", "clientCertificates": True},
        },
        "no certificate to show",
    ),
    ({"settings": {"otel": "on"}}, "no collector"),
    ({"preStopSeconds": -1}, "preStopSeconds"),
    ({"extraEnv": [{"name": "KUIPER_PORT", "value": "80"}]}, "extraEnv"),
    ({"settings": {"model_control": "explicit"}}, "one replica only"),
    ({"updateStrategy": {"maxSurge": 0}}, "may not both be 0"),
)
"""Values, and what the refusal has to say."""
