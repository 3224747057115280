"""What a CRD has the API server serve."""

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.crd import resources_of

ESTABLISHED: JsonObject = {"conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]}


def crd(*versions: JsonObject, scope: str = "Namespaced", status: JsonObject = ESTABLISHED, **metadata: str) -> JsonObject:
    spec: JsonObject = {"group": "ex.io", "scope": scope, "names": {"plural": "hellos", "kind": "Hello"}, "versions": list(versions)}
    return {"metadata": {"name": "hellos.ex.io", **metadata}, "spec": spec, "status": status}


def version(name: str, *, served: bool = True, has_status: bool = True) -> JsonObject:
    return {"name": name, "served": served, **({"subresources": {"status": {}}} if has_status else {})}


def test_each_served_version_is_a_resource():
    served = resources_of(crd(version("v1"), version("v2", has_status=False), version("v0", served=False), scope="Cluster"))

    assert served == (
        ResourceInfo(api_version="ex.io/v1", resource="hellos", kind="Hello", namespaced=False, has_status=True),
        ResourceInfo(api_version="ex.io/v2", resource="hellos", kind="Hello", namespaced=False, has_status=False),
    )


def test_nothing_is_served_before_the_crd_is_established():
    assert resources_of(crd(version("v1"), status={})) == ()
    assert resources_of(crd(version("v1"), status={"conditions": [{"type": "Established", "status": "False"}]})) == ()


def test_nothing_is_served_once_the_crd_is_being_deleted():
    assert resources_of(crd(version("v1"), deletionTimestamp="2026-01-01T00:00:00Z")) == ()


def test_a_crd_that_makes_no_sense_serves_nothing():
    assert resources_of({"metadata": {"name": "x"}, "spec": {"versions": "v1"}, "status": {"conditions": {}}}) == ()
