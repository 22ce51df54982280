"""Values of the chart that differ from the defaults, each with what it has to change in which object."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_POD = "spec.template.spec"
_CONTAINER = f"{_POD}.containers.0"
_ENV = f"{_CONTAINER}.env"
_SECRET_VALUE = {"secretKeyRef": {"name": "region", "key": "name"}}
_MONITORS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
_STORE_RULE = {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"port": 9000, "protocol": "TCP"}]}
_DIGEST = "sha256:" + "0123456789abcdef" * 4
_LARGER = {"requests": {"cpu": "4", "memory": "2Gi"}, "limits": {"cpu": "4", "memory": "4Gi"}}


@dataclass(frozen=True, slots=True)
class Case:
    """Values, and what they make of an object.

    Attributes:
        values: differ from the defaults.
        kind: of the object that they change.
        changed: path in the object -> what is there; None for nothing. `env.NAME` at the end of a path is a variable.
    """

    values: Mapping[str, Any]
    kind: str
    changed: Mapping[str, Any]


def _deployment(values: Mapping[str, Any], **changed: Any) -> Case:
    return Case(values, "Deployment", {path.replace("__", "."): value for path, value in changed.items()})


def _pod(values: Mapping[str, Any], **changed: Any) -> Case:
    return Case(values, "Deployment", {f"{_POD}.{path}": value for path, value in changed.items()})


def _container(values: Mapping[str, Any], **changed: Any) -> Case:
    return Case(values, "Deployment", {f"{_CONTAINER}.{path}": value for path, value in changed.items()})


def _variable(values: Mapping[str, Any], **changed: str | None) -> Case:
    return Case(values, "Deployment", {f"{_ENV}.KUIPER_{name}": value for name, value in changed.items()})


def _service(values: Mapping[str, Any], changed: Mapping[str, Any]) -> Case:
    return Case(values, "Service", changed)


def _mount(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **more}


def _identity(*addresses: str) -> dict[str, Any]:
    peers = [{"ipBlock": {"cidr": f"{address}/32"}} for address in addresses]
    return {"to": peers, "ports": [{"port": 80, "protocol": "TCP"}]}


_TMP, _CACHE = _mount("tmp", "/tmp"), _mount("cache", "/var/cache/kuiper")
_MODELS = _mount("models", "/models", readOnly=True)
KEYS = {"keys": {"existingSecret": "keys"}}
_TLS = {"tls": {"existingSecret": "certificate"}}
_SCALED = {"autoscaling": {"enabled": True}}
_MONITORED = {"serviceMonitor": {"enabled": True}}

IMAGE_CASES = (
    _container({"image": {"repository": "team/kuiper"}}, image="team/kuiper:0.1.0"),
    _container({"image": {"tag": "2.0"}}, image="kuiper-serve:2.0"),
    _container({"image": {"digest": _DIGEST}}, image=f"kuiper-serve@{_DIGEST}"),
    _container({"image": {"pullPolicy": "Always"}}, imagePullPolicy="Always"),
    _pod({"imagePullSecrets": ["registry"]}, imagePullSecrets=[{"name": "registry"}]),
    _deployment({"nameOverride": "models"}, metadata__name="demo-models"),
    _deployment({"fullnameOverride": "digits"}, metadata__name="digits"),
)
MODEL_CASES = (
    _variable(
        {"models": {"url": "s3://bucket/models"}},
        MODELS="s3://bucket/models",
        CACHE="/var/cache/kuiper/code",
    ),
    _container({"models": {"existingClaim": "models"}}, volumeMounts=[_TMP, _CACHE, _MODELS]),
    Case(
        {"models": {"image": "team/models:7", "subPath": "digits"}},
        "Deployment",
        {
            f"{_CONTAINER}.volumeMounts.2": {**_MODELS, "subPath": "digits"},
            f"{_POD}.volumes.2.image": {"reference": "team/models:7", "pullPolicy": "IfNotPresent"},
        },
    ),
    _variable({"models": {"name": "mnist"}}, MODEL_NAME="mnist"),
    _container({"models": {"credentialsSecret": "bucket"}}, envFrom=[{"secretRef": {"name": "bucket"}}]),
    Case(
        {"cache": {"existingClaim": "programs"}},
        "Deployment",
        {
            f"{_POD}.volumes.1": {"name": "cache", "persistentVolumeClaim": {"claimName": "programs"}},
            f"{_ENV}.KUIPER_CACHE": "/var/cache/kuiper/code",
        },
    ),
    Case(
        {"models": {"existingClaim": "models"}, "cache": {"sizeLimit": "5Gi"}},
        "Deployment",
        {f"{_POD}.volumes.1.emptyDir.sizeLimit": "5Gi"},
    ),
)
SERVER_CASES = (
    _variable({"host": "::"}, HOST="::"),
    _variable({"settings": {"workers": 3}}, WORKERS="3"),
    _variable({"settings": {"max_run_bytes": 4294967296}}, MAX_RUN_BYTES="4294967296"),
    _variable(
        {"settings": {"cors_origins": ["https://a.example.org", "https://b.example.org"]}},
        CORS_ORIGINS="https://a.example.org,https://b.example.org",
    ),
    _variable({"settings": {"skip_broken": True}}, SKIP_BROKEN="true"),
    _variable({"drainDelaySeconds": 2.5}, DRAIN_DELAY_SECONDS="2.5"),
    _pod({"drainDelaySeconds": 2.5, "settings": {"drain_seconds": 60}}, terminationGracePeriodSeconds=73),
    _pod({"shutdownMarginSeconds": 20}, terminationGracePeriodSeconds=55),
    _pod({"preStopSeconds": 15}, terminationGracePeriodSeconds=60),
    _container(
        {"preStopSeconds": 15},
        **{"lifecycle.preStop.exec.command": ["python", "-c", "import time; time.sleep(15)"]},
    ),
    _variable(KEYS, API_KEYS_FILE="/etc/kuiper/keys/api_keys", ADMIN_KEYS_FILE=None),
    _pod(
        {"keys": {"existingSecret": "keys", "apiKeys": "users"}},
        **{"volumes.1.secret.items": [{"key": "users", "path": "api_keys"}]},
    ),
    _variable(
        {"keys": {"existingSecret": "keys", "adminKeys": "admins"}},
        ADMIN_KEYS_FILE="/etc/kuiper/keys/admin_keys",
    ),
    Case(
        _TLS,
        "Deployment",
        {
            f"{_ENV}.KUIPER_SSL_CERTFILE": "/etc/kuiper/tls/tls.crt",
            f"{_ENV}.KUIPER_SSL_KEYFILE": "/etc/kuiper/tls/tls.key",
            f"{_CONTAINER}.readinessProbe.httpGet.scheme": "HTTPS",
            f"{_CONTAINER}.livenessProbe.httpGet.scheme": "HTTPS",
            f"{_CONTAINER}.startupProbe.httpGet.scheme": "HTTPS",
        },
    ),
    Case(
        {"tls": {"existingSecret": "certificate", "clientCertificates": True}},
        "Deployment",
        {
            f"{_ENV}.KUIPER_SSL_CA_CERTS": "/etc/kuiper/tls/ca.crt",
            f"{_CONTAINER}.readinessProbe.httpGet": None,
            f"{_CONTAINER}.readinessProbe.exec.command": ["python", "/opt/kuiper/healthcheck.py", "/readyz"],
            f"{_CONTAINER}.livenessProbe.exec.command": ["python", "/opt/kuiper/healthcheck.py", "/livez"],
        },
    ),
    _container(
        {"grpc": {"enabled": True}}, **{"ports.1": {"name": "grpc", "containerPort": 8001, "protocol": "TCP"}}
    ),
    _variable({"grpc": {"enabled": True}}, GRPC_PORT="8001"),
    _container(
        {"extraEnv": [{"name": "AWS_REGION", "value": "eu-central-1"}]}, **{"env.AWS_REGION": "eu-central-1"}
    ),
    _container(
        {"extraEnv": [{"name": "AWS_REGION", "valueFrom": _SECRET_VALUE}]},
        **{"env.-1": {"name": "AWS_REGION", "valueFrom": _SECRET_VALUE}},
    ),
)
SERVICE_CASES = (
    _service({"service": {"type": "LoadBalancer"}}, {"spec.type": "LoadBalancer"}),
    _service({"service": {"port": 80}}, {"spec.ports.0.port": 80}),
    _service({"service": {"headless": True}}, {"spec.clusterIP": "None"}),
    _service({"service": {"annotations": {"a": "b"}}}, {"metadata.annotations": {"a": "b"}}),
    _service(
        {"grpc": {"enabled": True, "port": 9000}},
        {"spec.ports.1.port": 9000, "spec.ports.1.appProtocol": "kubernetes.io/h2c"},
    ),
    _service(_TLS, {"spec.ports.0.appProtocol": "https"}),
)
POD_CASES = (
    _deployment({"replicas": 5}, spec__replicas=5),
    _container({"resources": _LARGER}, resources=_LARGER),
    _pod({"temporarySizeLimit": "1Gi"}, **{"volumes.0.emptyDir.sizeLimit": "1Gi"}),
    _container({"startupSeconds": 120}, **{"startupProbe.failureThreshold": 120}),
    _deployment({"updateStrategy": {"maxSurge": "50%"}}, spec__strategy__rollingUpdate__maxSurge="50%"),
    _deployment({"updateStrategy": {"maxUnavailable": 1}}, spec__strategy__rollingUpdate__maxUnavailable=1),
    _deployment({"progressDeadlineSeconds": 60}, spec__progressDeadlineSeconds=60),
    _deployment({"revisionHistoryLimit": 1}, spec__revisionHistoryLimit=1),
    _pod(
        {"topologySpread": {"zone": "DoNotSchedule"}},
        **{"topologySpreadConstraints.1.whenUnsatisfiable": "DoNotSchedule"},
    ),
    _pod(
        {"topologySpread": {"host": "off"}},
        **{"topologySpreadConstraints.0.topologyKey": "topology.kubernetes.io/zone"},
    ),
    _deployment({"podAnnotations": {"a": "b"}}, spec__template__metadata__annotations={"a": "b"}),
    _deployment({"podLabels": {"team": "vision"}}, spec__template__metadata__labels__team="vision"),
    _pod({"nodeSelector": {"disk": "fast"}}, nodeSelector={"disk": "fast"}),
    _pod(
        {"tolerations": [{"key": "spot", "operator": "Exists"}]},
        tolerations=[{"key": "spot", "operator": "Exists"}],
    ),
    _pod({"affinity": {"nodeAffinity": {}}}, affinity={"nodeAffinity": {}}),
    _pod({"priorityClassName": "high"}, priorityClassName="high"),
    _pod({"runtimeClassName": "gvisor"}, runtimeClassName="gvisor"),
    _pod({"serviceAccount": {"create": False}}, serviceAccountName="default"),
    _pod({"serviceAccount": {"name": "reader"}}, serviceAccountName="reader"),
    Case(
        {"serviceAccount": {"annotations": {"role": "reader"}}},
        "ServiceAccount",
        {"metadata.annotations": {"role": "reader"}},
    ),
)
REACHED = {"networkPolicy": {"from": [_MONITORS]}}
_BACKEND = {"service": {"name": "demo-kuiper-serve", "port": {"name": "http"}}}
_PATH = {"path": "/", "pathType": "Prefix", "backend": _BACKEND}
INGRESS_CASES = tuple(
    Case({**REACHED, "ingress": {"enabled": True, **values}}, "Ingress", changed)
    for values, changed in (
        ({}, {"spec.rules": [{"http": {"paths": [_PATH]}}], "spec.tls": None}),
        ({"className": "nginx"}, {"spec.ingressClassName": "nginx"}),
        (
            {"hosts": ["a.example.org", "*.b.example.org"]},
            {
                "spec.rules.0": {"host": "a.example.org", "http": {"paths": [_PATH]}},
                "spec.rules.1.host": "*.b.example.org",
            },
        ),
        ({"path": "/digits"}, {"spec.rules.0.http.paths.0.path": "/digits"}),
        (
            {"hosts": ["a.example.org"], "tlsSecret": "certificate"},
            {"spec.tls": [{"secretName": "certificate", "hosts": ["a.example.org"]}]},
        ),
        ({"annotations": {"a": "b"}}, {"metadata.annotations": {"a": "b"}}),
    )
)
CLUSTER_CASES = (
    Case({"podDisruptionBudget": {"enabled": False}}, "PodDisruptionBudget", {"": None}),
    Case(
        {"podDisruptionBudget": {"maxUnavailable": "25%"}},
        "PodDisruptionBudget",
        {"spec.maxUnavailable": "25%"},
    ),
    Case({"networkPolicy": {"enabled": False}}, "NetworkPolicy", {"": None}),
    Case({"networkPolicy": {"from": [_MONITORS]}}, "NetworkPolicy", {"spec.ingress.0.from": [_MONITORS]}),
    Case(
        {"networkPolicy": {"metricsFrom": [_MONITORS]}}, "NetworkPolicy", {"spec.ingress.1.from": [_MONITORS]}
    ),
    Case({"networkPolicy": {"egress": [_STORE_RULE]}}, "NetworkPolicy", {"spec.egress": [_STORE_RULE]}),
    Case(
        {"models": {"url": "s3://bucket"}},
        "NetworkPolicy",
        {
            "spec.egress.1.ports": [{"port": 443, "protocol": "TCP"}],
            "spec.egress.2": _identity("169.254.169.254", "169.254.170.23"),
        },
    ),
    Case(
        {"models": {"url": "gs://bucket"}},
        "NetworkPolicy",
        {"spec.egress.2": _identity("169.254.169.254"), "spec.egress.3.ports.0.port": 988},
    ),
    Case(
        {"models": {"url": "az://bucket", "credentialsSecret": "bucket"}},
        "NetworkPolicy",
        {"spec.egress.1.ports.0.port": 443, "spec.egress.2": None},
    ),
    Case({"grpc": {"enabled": True}}, "NetworkPolicy", {"spec.ingress.0.ports.1.port": "grpc"}),
    _deployment(_SCALED, spec__replicas=None),
    Case(
        _SCALED,
        "ScaledObject",
        {
            "spec.scaleTargetRef.name": "demo-kuiper-serve",
            "spec.triggers.0.metadata.query": 'sum(nv_inference_pending_request_count{namespace="prod",'
            'service="demo-kuiper-serve"}) + sum(kuiper_workers_busy{namespace="prod",service="demo-kuiper-serve"})',
        },
    ),
    *(
        Case({"autoscaling": {"enabled": True, name: value}}, "ScaledObject", {path: shown})
        for name, value, path, shown in (
            (
                "prometheus",
                "https://metrics.example.org",
                "spec.triggers.0.metadata.serverAddress",
                "https://metrics.example.org",
            ),
            ("minReplicas", 3, "spec.minReplicaCount", 3),
            ("maxReplicas", 40, "spec.maxReplicaCount", 40),
            ("requestsPerReplica", 2.5, "spec.triggers.0.metadata.threshold", "2.5"),
            ("pollingSeconds", 30, "spec.pollingInterval", 30),
            (
                "scaleDownSeconds",
                60,
                "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.stabilizationWindowSeconds",
                60,
            ),
            ("fallbackReplicas", 7, "spec.fallback.replicas", 7),
        )
    ),
    Case(_MONITORED, "ServiceMonitor", {"spec.endpoints.0.path": "/metrics"}),
    *(
        Case({**more, "serviceMonitor": {"enabled": True, **values}}, "ServiceMonitor", changed)
        for values, more, changed in (
            ({"labels": {"release": "prometheus"}}, {}, {"metadata.labels.release": "prometheus"}),
            ({"interval": "1m30s"}, {}, {"spec.endpoints.0.interval": "1m30s"}),
            ({"scrapeTimeout": "3s"}, {}, {"spec.endpoints.0.scrapeTimeout": "3s"}),
            (
                {"keySecret": {"name": "scrape"}},
                KEYS,
                {
                    "spec.endpoints.0.authorization": {
                        "type": "Bearer",
                        "credentials": {"name": "scrape", "key": "key"},
                    }
                },
            ),
            (
                {"keySecret": {"name": "scrape", "key": "token"}},
                KEYS,
                {"spec.endpoints.0.authorization.credentials.key": "token"},
            ),
            ({}, _TLS, {"spec.endpoints.0.scheme": "https"}),
        )
    ),
)
CASES = (
    *IMAGE_CASES,
    *MODEL_CASES,
    *SERVER_CASES,
    *SERVICE_CASES,
    *POD_CASES,
    *INGRESS_CASES,
    *CLUSTER_CASES,
)
