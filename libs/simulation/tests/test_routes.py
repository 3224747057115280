"""Requests to the model of the API server: what each path, query and body means, and what is refused."""

import re

import pytest

from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.kube.client import MERGE_PATCH
from metaloop.common.kube.transport import Request
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.simulation.cluster.objects import Refusal
from metaloop.simulation.cluster.routes import Routes
from metaloop.simulation.cluster.store import Key, Store
from metaloop.simulation.resources import CONFIG_MAPS, THINGS

NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False)
MAPS = "/api/v1/namespaces/default/configmaps"
THING = "/apis/sim.metaloop.dev/v1/namespaces/default/things"


@pytest.fixture
def store() -> Store:
    store = Store(clock=lambda: "2026-01-01T00:00:00Z", on_change=lambda *_: None)
    store.serve(THINGS, CONFIG_MAPS, NODES)
    return store


@pytest.fixture
def routes(store: Store) -> Routes:
    return Routes(store)


def get(target: str) -> Request:
    return Request(method="GET", target=target)


def sending(method: str, target: str, body: JsonValue) -> Request:
    return Request(method=method, target=target, body=dumps(body), content_type=MERGE_PATCH if method == "PATCH" else "application/json")


def refusal_of(routes: Routes, request: Request) -> Refusal:
    with pytest.raises(Refusal) as caught:
        routes.answer(request)
    return caught.value


def fill(routes: Routes, *names: str, **labels: str) -> None:
    for name in names:
        routes.answer(sending("POST", MAPS, {"metadata": {"name": name, "labels": {**labels}}}))


def names_in(page: JsonObject) -> list[str]:
    return [unstructured.name(item) for item in unstructured.child_objects(page, "items")]


def token_of(page: JsonObject) -> str:
    return unstructured.text(unstructured.metadata(page), "continue")


@pytest.mark.parametrize(
    ("path", "info", "key", "subresource"),
    [
        ("/api/v1/configmaps", CONFIG_MAPS, Key("", ""), ""),
        ("/api/v1/namespaces/n/configmaps", CONFIG_MAPS, Key("n", ""), ""),
        ("/api/v1/namespaces/n/configmaps/a", CONFIG_MAPS, Key("n", "a"), ""),
        ("/api/v1/nodes/a", NODES, Key("", "a"), ""),
        ("/apis/sim.metaloop.dev/v1/namespaces/n/things/a/status", THINGS, Key("n", "a"), "status"),
        ("/api/v1/namespaces/n/configmaps/a%3Ab", CONFIG_MAPS, Key("n", "a:b"), ""),
    ],
)
def test_a_path_names_resource_object_and_subresource(routes: Routes, path: str, info: ResourceInfo, key: Key, subresource: str):
    target = routes.target(get(path))

    assert (target.info, target.key, target.subresource) == (info, key, subresource)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api",
        "/api/v2/configmaps",
        "/apis/v1/configmaps",
        "/api/v1/secrets",
        "/apis/other.dev/v1/things",
        f"{MAPS}/a/scale",
        f"{MAPS}/",
    ],
)
def test_a_path_that_is_not_served_is_not_found(routes: Routes, path: str):
    with pytest.raises(Refusal, match=re.escape(path)) as refusal:
        routes.target(get(path))

    assert (refusal.value.code, refusal.value.reason) == (404, "NotFound")


@pytest.mark.parametrize(("query", "expected"), [("", False), ("?dryRun=", False), ("?dryRun=None", False), ("?dryRun=All", True)])
def test_only_dry_runs_of_all_stages_store_nothing(routes: Routes, query: str, *, expected: bool):
    assert routes.target(get(MAPS + query)).is_dry_run is expected


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_dry_run_answers_and_stores_nothing(routes: Routes, store: Store, method: str):
    fill(routes, "a")
    path = MAPS if method == "POST" else f"{MAPS}/a"
    body: JsonObject = {} if method == "DELETE" else {"metadata": {"name": "b" if method == "POST" else "a", "labels": {"l": "1"}}}
    before = store.version, store.list(CONFIG_MAPS)

    answer = routes.answer(sending(method, f"{path}?dryRun=All", body))

    assert answer["kind"] == "ConfigMap"
    assert (store.version, store.list(CONFIG_MAPS)) == before


def test_a_list_is_of_its_namespace_and_one_of_all_is_in_order(routes: Routes):
    fill(routes, "b", "a")
    routes.answer(sending("POST", "/api/v1/namespaces/another/configmaps", {"metadata": {"name": "c"}}))

    assert names_in(routes.answer(get(MAPS))) == ["a", "b"]
    assert names_in(routes.answer(get("/api/v1/configmaps"))) == ["c", "a", "b"]


def test_a_list_has_the_kind_and_the_version_of_the_store(routes: Routes, store: Store):
    fill(routes, "a")

    page = routes.answer(get(MAPS))

    assert (page["kind"], page["apiVersion"]) == ("ConfigMapList", "v1")
    assert unstructured.resource_version(page) == str(store.version)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("color=red", ["r"]),
        ("color", ["b", "r"]),
        ("!color", ["n"]),
        ("color!=red", ["b", "n"]),
        ("color%20in%20(red,blue)", ["b", "r"]),
        ("color=red,color=blue", []),
    ],
)
def test_a_list_has_only_what_its_selector_matches(routes: Routes, selector: str, names: list[str]):
    fill(routes, "r", color="red")
    fill(routes, "b", color="blue")
    fill(routes, "n")

    assert names_in(routes.answer(get(f"{MAPS}?labelSelector={selector}"))) == names


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1, 1, 1, 1, 1]), (2, [2, 2, 1]), (4, [4, 1]), (5, [5]), (9, [5])])
def test_pages_show_each_object_once(routes: Routes, limit: int, sizes: list[int]):
    fill(routes, *"abcde")
    pages = [names_in(page := routes.answer(get(f"{MAPS}?limit={limit}")))]

    while token := token_of(page):
        pages.append(names_in(page := routes.answer(get(f"{MAPS}?limit={limit}&continue={token}"))))

    assert [len(names) for names in pages] == sizes
    assert [name for names in pages for name in names] == [*"abcde"]


def test_a_list_does_not_go_on_once_anything_changed(routes: Routes):
    fill(routes, *"abc")
    token = token_of(routes.answer(get(f"{MAPS}?limit=2")))
    routes.answer(sending("POST", THING, {"metadata": {"name": "a"}}))

    refusal = refusal_of(routes, get(f"{MAPS}?limit=2&continue={token}"))

    assert (refusal.code, refusal.reason) == (410, "Expired")


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        (sending("POST", MAPS, []), 400, "BadRequest"),
        (sending("POST", MAPS, {"metadata": {}}), 422, "Invalid"),
        (sending("PUT", f"{MAPS}/a", "text"), 400, "BadRequest"),
        (sending("PUT", f"{MAPS}/missing", {}), 404, "NotFound"),
        (sending("PATCH", f"{MAPS}/missing", {}), 404, "NotFound"),
        (sending("PATCH", f"{MAPS}/a", {"metadata": {"uid": "other"}}), 422, "Invalid"),
        (Request(method="PATCH", target=f"{MAPS}/a", body=b"{}", content_type="application/apply-patch+yaml"), 415, "UnsupportedMediaType"),
        (sending("DELETE", f"{MAPS}/missing", {}), 404, "NotFound"),
        (sending("DELETE", f"{MAPS}/a", {"preconditions": {"resourceVersion": "1"}}), 409, "Conflict"),
        (Request(method="OPTIONS", target=MAPS), 405, "MethodNotAllowed"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(routes: Routes, store: Store, request_: Request, code: int, reason: str):
    fill(routes, "a")
    before = store.version

    refusal = refusal_of(routes, request_)

    assert (refusal.code, refusal.reason) == (code, reason)
    assert store.version == before


def test_a_deletion_that_is_over_is_answered_with_a_status(routes: Routes, store: Store):
    fill(routes, "a")
    uid = unstructured.uid(store.get(CONFIG_MAPS, Key("default", "a")))

    answer = routes.answer(sending("DELETE", f"{MAPS}/a", {"preconditions": {"uid": uid}}))

    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": uid}


def test_a_deletion_that_waits_is_answered_with_the_object(routes: Routes):
    routes.answer(sending("POST", MAPS, {"metadata": {"name": "a", "finalizers": ["f"]}}))

    answer = routes.answer(sending("DELETE", f"{MAPS}/a", {}))

    assert answer["kind"] == "ConfigMap"
    assert unstructured.is_deleting(answer)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api", {"": {"configmaps": ("Namespaced", 0), "nodes": ("Cluster", 0)}}),
        ("/apis", {"sim.metaloop.dev": {"things": ("Namespaced", 1)}}),
    ],
)
def test_discovery_tells_groups_scopes_and_subresources(routes: Routes, path: str, found: dict[str, object]):
    groups: dict[str, object] = {}

    for group in unstructured.child_objects(routes.answer(get(path)), "items"):
        [version] = unstructured.child_objects(group, "versions")
        assert version["version"] == "v1"
        groups[unstructured.name(group)] = {
            unstructured.text(each, "resource"): (each["scope"], len(unstructured.child_objects(each, "subresources")))
            for each in unstructured.child_objects(version, "resources")
        }

    assert groups == found
