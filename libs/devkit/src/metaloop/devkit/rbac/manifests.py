"""The roles of the services, in place of those that allow everything."""

from collections.abc import Iterable, Mapping, Sequence

import yaml

from metaloop.common.json import JsonObject
from metaloop.devkit.rbac.rules import Need, Service, rules_of


def roles(needs: Mapping[Service, Sequence[Need]]) -> list[JsonObject]:
    """A ClusterRole for each service, with the name of the one that the manifests install."""
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"metaloop-{service}", "labels": {"app.kubernetes.io/part-of": "metaloop"}},
            "rules": [*rules_of(needed)],
        }
        for service, needed in needs.items()
    ]


def as_yaml(objects: Iterable[JsonObject]) -> str:
    """Objects as one YAML stream."""
    return yaml.safe_dump_all(objects, sort_keys=False)
