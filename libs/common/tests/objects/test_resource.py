"""Resources: the parts of an apiVersion, the paths at which objects are served, and the wire form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import dumps, loads
from metaloop.common.objects.resource import ResourceId, ResourceInfo, group_of, version_of

infos = st.builds(
    ResourceInfo,
    api_version=st.sampled_from(["v1", "apps/v1", "ex.io/v1beta1"]),
    resource=st.text("abc", min_size=1),
    kind=st.text("ABC", min_size=1),
    namespaced=st.booleans(),
    has_status=st.booleans(),
)


def info(api_version: str, *, namespaced: bool) -> ResourceInfo:
    return ResourceInfo(api_version=api_version, resource="things", kind="Thing", namespaced=namespaced)


@pytest.mark.parametrize(
    ("api_version", "group", "version"),
    [("v1", "", "v1"), ("apps/v1", "apps", "v1"), ("networking.k8s.io/v1beta1", "networking.k8s.io", "v1beta1"), ("", "", "")],
)
def test_api_version_is_group_and_version(api_version: str, group: str, version: str):
    resource = info(api_version, namespaced=True)

    assert (group_of(api_version), version_of(api_version)) == (group, version)
    assert resource.group == resource.id.group == group


@pytest.mark.parametrize(
    ("resource", "namespace", "collection", "path"),
    [
        (info("v1", namespaced=True), "n", "/api/v1/namespaces/n/things", "/api/v1/namespaces/n/things/a"),
        (info("v1", namespaced=True), "", "/api/v1/things", "/api/v1/things/a"),
        (info("v1", namespaced=False), "", "/api/v1/things", "/api/v1/things/a"),
        (info("v1", namespaced=False), "n", "/api/v1/things", "/api/v1/things/a"),
        (info("ex.io/v1", namespaced=True), "n", "/apis/ex.io/v1/namespaces/n/things", "/apis/ex.io/v1/namespaces/n/things/a"),
        (info("ex.io/v1", namespaced=False), "", "/apis/ex.io/v1/things", "/apis/ex.io/v1/things/a"),
    ],
)
def test_objects_are_served_below_their_group_and_namespace(resource: ResourceInfo, namespace: str, collection: str, path: str):
    assert resource.collection_path(namespace) == collection
    assert resource.path(namespace, "a") == path


@given(infos)
def test_a_resource_survives_the_wire(resource: ResourceInfo):
    received = ResourceInfo.from_json(loads(dumps(resource.to_json())))

    assert received == resource
    assert received.id == ResourceId(resource.api_version, resource.resource)


@given(infos)
def test_peer_that_says_nothing_of_a_status_means_that_there_is_none(resource: ResourceInfo):
    wire = {key: value for key, value in resource.to_json().items() if key != "hasStatus"}

    assert not ResourceInfo.from_json(wire).has_status


@pytest.mark.parametrize("missing", ["apiVersion", "resource", "kind", "namespaced"])
def test_wire_form_without_a_field_is_refused(missing: str):
    wire = info("v1", namespaced=True).to_json()
    del wire[missing]

    with pytest.raises(KeyError, match=missing):
        ResourceInfo.from_json(wire)


def test_resource_is_shown_as_in_a_path():
    assert str(ResourceId("apps/v1", "deployments")) == "apps/v1/deployments"
