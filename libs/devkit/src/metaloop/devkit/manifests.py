"""The CRDs of Metaloop's kinds, which ship with this package."""

from pathlib import Path

import yaml

from metaloop.common.json import JsonObject

_FOLDER = Path(__file__).with_name("crds")
_KUSTOMIZATION = "kustomization.yaml"


def crds_yaml() -> str:
    """All CRD manifests as one YAML stream, comments included."""
    return "---\n".join(file.read_text() for file in sorted(_FOLDER.glob("*.yaml")) if file.name != _KUSTOMIZATION)


def crds() -> list[JsonObject]:
    """All CRD manifests as values."""
    return list(yaml.safe_load_all(crds_yaml()))
