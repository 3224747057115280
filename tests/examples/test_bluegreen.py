"""The blue-green example: how a change goes out all at once, step by step."""

import json

from .hooks import Json, hook_module, names

HOOK = hook_module("bluegreen")
V1: Json = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
V2: Json = {**V1, "spec": {"containers": [{"name": "web", "image": "web:2"}]}}
V3: Json = {**V1, "spec": {"containers": [{"name": "web", "image": "web:3"}]}}


def web(template: Json = V1, *, replicas: int = 3) -> Json:
    """The parent."""
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, "ports": [{"port": 80}]}
    return {"metadata": {"name": "web"}, "spec": spec}


def a_set(template: Json, *, replicas: int = 3, available: int = 3, generation: int = 1, seen: int = 1) -> Json:
    """A ReplicaSet as the cluster has it."""
    metadata = {"generation": generation, "annotations": {HOOK.MADE_OF: json.dumps(template, sort_keys=True)}}
    status = {"observedGeneration": seen, "replicas": replicas, "availableReplicas": available, "readyReplicas": available}
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}


def answer(parent: Json, *, blue: Json | None = None, green: Json | None = None, active: str = "") -> Json:
    """What the hook answers, with these ReplicaSets there and the traffic sent to a colour."""
    sets = {f"web-{color}": found for color, found in (("blue", blue), ("green", green)) if found}
    service = {"web": {"spec": {"selector": {"app": "web", HOOK.COLOR: active}}}} if active else {}
    return HOOK.sync({"parent": parent, "children": {"ReplicaSet.apps/v1": sets, "Service.v1": service}})


def replicas_of(answered: Json) -> dict[str, int]:
    """How many Pods each colour is to have."""
    return {child["metadata"]["name"]: child["spec"]["replicas"] for child in answered["children"] if child["kind"] == "ReplicaSet"}


def image_of(answered: Json, color: str) -> str:
    """Which image a colour is to run."""
    [found] = [child for child in answered["children"] if child["metadata"]["name"] == f"web-{color}"]
    return found["spec"]["template"]["spec"]["containers"][0]["image"]


def traffic_of(answered: Json) -> str:
    """Which colour is to have the traffic."""
    [service] = [child for child in answered["children"] if child["kind"] == "Service"]
    return service["spec"]["selector"][HOOK.COLOR]


def test_new_parent_begins_as_blue() -> None:
    answered = answer(web())

    assert (replicas_of(answered), traffic_of(answered)) == ({"web-blue": 3, "web-green": 0}, "blue")
    assert names(answered["children"], "Service") == ["web"]


def test_at_rest_the_idle_colour_has_no_pods_and_its_old_template() -> None:
    answered = answer(web(V2), blue=a_set(V1, replicas=0, available=0), green=a_set(V2), active="green")

    assert (replicas_of(answered), traffic_of(answered)) == ({"web-blue": 0, "web-green": 3}, "green")
    assert image_of(answered, "blue") == "web:1"
    assert not answered["status"]["rollingOut"]


def test_changed_template_starts_the_idle_colour_and_leaves_the_traffic() -> None:
    answered = answer(web(V2), blue=a_set(V1), green=a_set(V1, replicas=0, available=0), active="blue")

    assert (replicas_of(answered), traffic_of(answered)) == ({"web-blue": 3, "web-green": 3}, "blue")
    assert (image_of(answered, "blue"), image_of(answered, "green")) == ("web:1", "web:2")
    assert answered["status"] == {"active": "blue", "activeReady": 3, "idleReady": 0, "rollingOut": True}


def test_traffic_waits_until_all_new_pods_are_available() -> None:
    almost = answer(web(V2), blue=a_set(V1), green=a_set(V2, available=2), active="blue")
    outdated = answer(web(V2), blue=a_set(V1), green=a_set(V2, generation=2, seen=1), active="blue")

    assert [traffic_of(almost), traffic_of(outdated)] == ["blue", "blue"]


def test_traffic_switches_when_the_new_pods_are_available() -> None:
    answered = answer(web(V2), blue=a_set(V1), green=a_set(V2), active="blue")

    assert traffic_of(answered) == "green"
    assert answered["status"] == {"active": "green", "activeReady": 3, "idleReady": 3, "rollingOut": False}


def test_second_change_first_removes_the_pods_of_the_unfinished_one() -> None:
    answered = answer(web(V3), blue=a_set(V1), green=a_set(V2, available=1), active="blue")

    assert replicas_of(answered) == {"web-blue": 3, "web-green": 0}
    assert traffic_of(answered) == "blue"


def test_changing_back_in_the_middle_drops_the_rollout() -> None:
    answered = answer(web(V1), blue=a_set(V1), green=a_set(V2, available=1), active="blue")

    assert (replicas_of(answered), traffic_of(answered)) == ({"web-blue": 3, "web-green": 0}, "blue")
    assert not answered["status"]["rollingOut"]


def test_scaling_needs_no_rollout() -> None:
    answered = answer(web(V1, replicas=5), blue=a_set(V1), active="blue")

    assert replicas_of(answered) == {"web-blue": 5, "web-green": 0}
    assert not answered["status"]["rollingOut"]


def test_children_are_selected_by_the_parents_labels_and_their_colour() -> None:
    children = answer(web())["children"]

    assert all(child["metadata"]["labels"]["app"] == "web" for child in children)
    for child in children[:2]:
        assert child["spec"]["selector"]["matchLabels"].items() <= child["spec"]["template"]["metadata"]["labels"].items()
