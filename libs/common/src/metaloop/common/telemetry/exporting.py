"""Where spans go and whose they are, as the settings and the standard variables of OpenTelemetry say."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from metaloop.common.machine import unique_token
from metaloop.common.version import version

_PATH: Final = "/v1/traces"
_NAMESPACE_OF_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def traces_url(configured: str, environ: Mapping[str, str]) -> str:
    """The URL that spans are sent to; empty for none.

    The setting takes precedence over OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which names the URL itself, and that over
    OTEL_EXPORTER_OTLP_ENDPOINT. OTEL_SDK_DISABLED turns all of them off.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    if exact := environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "") if not configured else "":
        return exact
    base = configured or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return base if not base or base.endswith(_PATH) else base.rstrip("/") + _PATH


def resource_attributes(service: str, environ: Mapping[str, str], *, namespace_file: Path = _NAMESPACE_OF_POD) -> dict[str, str]:
    """What tells this process from all others, its replicas included."""
    attributes = {
        "service.name": f"metaloop-{service}",
        "service.version": version(),
        "service.instance.id": f"{platform.node()}-{os.getpid()}-{unique_token()[:16]}",
        "host.name": platform.node(),
    }
    if "KUBERNETES_SERVICE_HOST" in environ:  # in a pod, whose host name is its own name
        attributes["k8s.pod.name"] = platform.node()
        if namespace_file.exists():
            attributes["k8s.namespace.name"] = namespace_file.read_text().strip()
    return attributes
