"""The resources of a run that users and hooks write."""

from typing import Final

from metaloop.common.objects.resource import ResourceInfo

NAMESPACE: Final = "default"
"""Where everything namespaced is."""
THINGS: Final = ResourceInfo(api_version="sim.metaloop.dev/v1", resource="things", kind="Thing", namespaced=True, has_status=True)
"""The parents."""
ROUTES: Final = ResourceInfo(api_version="sim.metaloop.dev/v1", resource="routes", kind="Route", namespaced=True)
"""Children whose schema is unknown."""
CONFIG_MAPS: Final = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
"""Children, related objects, and what concerns no controller."""
