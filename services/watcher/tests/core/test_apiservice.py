"""What an APIService has the API server pass on."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.watcher.core.apiservice import version_passed_on

AVAILABLE: JsonObject = {"conditions": [{"type": "Available", "status": "True"}]}
AWAY: JsonObject = {"conditions": [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]}
SERVICE: JsonObject = {"name": "metrics", "namespace": "kube-system"}


def api_service(*, service: JsonObject | None = SERVICE, status: JsonObject = AVAILABLE, **metadata: str) -> JsonObject:
    spec: JsonObject = {"group": "ex.io", "version": "v1", "service": service}
    return {"metadata": {"name": "v1.ex.io", **metadata}, "spec": spec, "status": status}


def test_a_version_is_passed_on_while_its_server_is_there():
    assert version_passed_on(api_service()) == "ex.io/v1"


@pytest.mark.parametrize(
    "api_service",
    [
        pytest.param(api_service(service=None), id="the API server serves it itself"),
        pytest.param(api_service(status=AWAY), id="its server is away"),
        pytest.param(api_service(status={}), id="nobody has looked yet"),
        pytest.param(api_service(deletionTimestamp="2026-01-01T00:00:00Z"), id="it is being deleted"),
        pytest.param({"metadata": {"name": "x"}, "spec": "y", "status": {"conditions": {}}}, id="it makes no sense"),
    ],
)
def test_nothing_is_passed_on_otherwise(api_service: JsonObject):
    assert version_passed_on(api_service) == ""
