"""The fields of a RayService that its documentation names, as a JSON schema: no package has KubeRay's definition."""

_GROUP = {
    "rayStartParams": {"type": "object", "additionalProperties": {"type": "string"}},
    "template": {
        "type": "object",
        "required": ["spec"],
        "additionalProperties": False,
        "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "required": ["containers"]},
        },
    },
}
_COUNT = {"type": "integer", "minimum": 0}
RAY_SERVICE = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayService"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "required": ["rayClusterConfig", "serveConfigV2"],
            "additionalProperties": False,
            "properties": {
                "serveConfigV2": {"type": "string"},
                "serveService": {"type": "object"},
                "excludeHeadPodFromServeSvc": {"type": "boolean"},
                "rayClusterDeletionDelaySeconds": {"type": "integer", "minimum": 0},
                "upgradeStrategy": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "type": {"enum": ["NewCluster", "None", "NewClusterWithIncrementalUpgrade"]}
                    },
                },
                "rayClusterConfig": {
                    "type": "object",
                    "required": ["headGroupSpec"],
                    "additionalProperties": False,
                    "properties": {
                        "rayVersion": {"type": "string"},
                        "enableInTreeAutoscaling": {"type": "boolean"},
                        "headGroupSpec": {
                            "type": "object",
                            "required": ["template"],
                            "additionalProperties": False,
                            "properties": {**_GROUP, "serviceType": {"type": "string"}},
                        },
                        "workerGroupSpecs": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["groupName", "template"],
                                "additionalProperties": False,
                                "properties": {
                                    **_GROUP,
                                    "groupName": {"type": "string"},
                                    "replicas": _COUNT,
                                    "minReplicas": _COUNT,
                                    "maxReplicas": _COUNT,
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
