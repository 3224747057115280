"""What a CRD has the API server serve."""

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.crd import CrdResources, resources_of
from metaloop.watcher.core.record import ObjectKey

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


def test_resources_are_served_while_the_crd_is_being_deleted():
    assert resources_of(crd(version("v1"), deletionTimestamp="2026-01-01T00:00:00Z")) == resources_of(crd(version("v1")))


def test_a_crd_that_makes_no_sense_serves_nothing():
    assert resources_of({"metadata": {"name": "x"}, "spec": {"versions": "v1"}, "status": {"conditions": {}}}) == ()


KEY: ObjectKey = ("", "hellos.ex.io")
HELLOS = ResourceId("ex.io/v1", "hellos")


def test_resource_of_a_crd_is_served_before_discovery_lists_it():
    crds = CrdResources()

    crds.take(KEY, crd(version("v1")))

    assert set(crds.prevail_over({})) == {HELLOS}


def test_resource_of_a_deleted_crd_is_not_served_whatever_discovery_still_lists():
    crds, discovered = CrdResources(), resources(crd(version("v1")))
    crds.take(KEY, crd(version("v1")))
    crds.take(KEY, None)

    assert set(crds.prevail_over({})) == set()
    assert set(crds.prevail_over(discovered)) == set()


def test_version_that_a_crd_no_longer_serves_is_gone_at_once():
    crds, both = CrdResources(), crd(version("v1"), version("v2"))
    crds.take(KEY, both)

    crds.take(KEY, crd(version("v1", served=False), version("v2")))

    assert set(crds.prevail_over(resources(both))) == {ResourceId("ex.io/v2", "hellos")}


def test_crd_that_is_installed_again_is_served_again():
    crds = CrdResources()
    crds.take(KEY, crd(version("v1")))
    crds.take(KEY, None)

    crds.take(KEY, crd(version("v1"), scope="Cluster"))

    assert [each.namespaced for each in crds.prevail_over(resources(crd(version("v1")))).values()] == [False]


def test_what_another_api_server_serves_instead_of_a_crd_is_as_discovery_lists_it():
    crds, discovered = CrdResources(), resources(crd(version("v1")))
    crds.take(KEY, crd(version("v1")))
    crds.take(KEY, None)

    crds.pass_on("ex.io/v2")
    assert crds.prevail_over(discovered) == {}
    crds.pass_on("ex.io/v1")
    assert crds.prevail_over(discovered) == discovered


def resources(of: JsonObject) -> dict[ResourceId, ResourceInfo]:
    return {each.id: each for each in resources_of(of)}
