"""Which cluster this is: by the UID of its namespace kube-system, which lives as long as the cluster."""

import asyncio

from metaloop.common.errors import Refused, Transient
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_NAMESPACES = ResourceInfo(api_version="v1", resource="namespaces", kind="Namespace", namespaced=False)
_NAMESPACE = "kube-system"
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0


async def cluster_uid(kube: KubeClient) -> str:
    """The cluster's UID, as soon as the API server tells it; empty, and logged, where it refuses to."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return unstructured.uid(await kube.get(_NAMESPACES, "", _NAMESPACE))
        except Refused as error:
            log.warning("cluster.unidentified", **{fields.ERROR: str(error)})
            return ""
        except Transient as error:
            if pause == _FIRST_PAUSE_SECONDS:
                log.warning("cluster.unreachable", **{fields.ERROR: str(error)})
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
