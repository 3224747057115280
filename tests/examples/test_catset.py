"""The CatSet example: which Pods and volumes there may be by now."""

import pytest

from .hooks import Json, hook_module, names, observed, pod

HOOK = hook_module("catset")


def cats(*, replicas: int = 3, claims: tuple[str, ...] = ("home",)) -> Json:
    """The parent."""
    spec = {
        "replicas": replicas,
        "serviceName": "cats",
        "selector": {"matchLabels": {"app": "cats"}},
        "template": {"metadata": {"labels": {"app": "cats"}}, "spec": {"containers": [{"name": "cat"}], "volumes": [{"name": "own"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"]}} for name in claims],
    }
    return {"metadata": {"name": "cat"}, "spec": spec}


def request(parent: Json, pods: list[Json], *, claims: tuple[str, ...] = ()) -> Json:
    """A call with these Pods and claims there."""
    by_name = {each["metadata"]["name"]: each for each in pods}
    there = observed(*[{"name": name} for name in claims])
    return {"parent": parent, "children": {"Pod.v1": by_name, "PersistentVolumeClaim.v1": there}}


READINESS: dict[str, tuple[list[Json], list[str]]] = {
    # what it shows: (the Pods that are there, those that are wanted)
    "none is there": ([], ["cat-0"]),
    "the first is not ready": ([pod("cat-0", ready=False)], ["cat-0"]),
    "the first is ready": ([pod("cat-0")], ["cat-1", "cat-0"]),
    "two are ready": ([pod("cat-0"), pod("cat-1")], ["cat-2", "cat-1", "cat-0"]),
    "all are ready": ([pod("cat-0"), pod("cat-1"), pod("cat-2")], ["cat-2", "cat-1", "cat-0"]),
    "one in the middle is not ready any more": ([pod("cat-0"), pod("cat-1", ready=False), pod("cat-2")], ["cat-2", "cat-1", "cat-0"]),
    "one in the middle is gone": ([pod("cat-0"), pod("cat-2")], ["cat-2", "cat-1", "cat-0"]),
    "the first is going": ([pod("cat-0", going=True), pod("cat-1")], ["cat-1", "cat-0"]),
    "there are too many": ([pod("cat-0"), pod("cat-1"), pod("cat-2"), pod("cat-3")], ["cat-2", "cat-1", "cat-0"]),
}


@pytest.mark.parametrize("case", READINESS.values(), ids=READINESS.keys())
def test_each_pod_waits_for_those_before_it_and_the_last_is_named_first(case: tuple[list[Json], list[str]]) -> None:
    pods, wanted = case

    answered = HOOK.sync(request(cats(), pods))

    assert names(answered["children"], "Pod") == wanted


def test_status_counts_pods_and_those_that_are_ready() -> None:
    pods = [pod("cat-0"), pod("cat-1", ready=False), pod("cat-2", going=True)]

    assert HOOK.sync(request(cats(), pods))["status"] == {"replicas": 3, "readyReplicas": 1}


def test_pod_has_its_name_its_address_and_a_volume_for_each_claim() -> None:
    [made] = [child for child in HOOK.sync(request(cats(), []))["children"] if child["kind"] == "Pod"]

    spec = made["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("cat-0", "cats")
    assert spec["volumes"] == [{"name": "own"}, {"name": "home", "persistentVolumeClaim": {"claimName": "home-cat-0"}}]
    assert made["metadata"] == {"name": "cat-0", "labels": {"app": "cats"}}


def test_claims_are_made_for_all_pods_and_kept_for_those_that_are_gone() -> None:
    answered = HOOK.sync(request(cats(replicas=2), [], claims=("home-cat-0", "home-cat-5", "home-dog-0")))

    assert names(answered["children"], "PersistentVolumeClaim") == ["home-cat-0", "home-cat-1", "home-cat-5"]


def test_set_without_claims_has_no_volumes_of_its_own() -> None:
    answered = HOOK.sync(request(cats(claims=()), []))

    assert names(answered["children"], "PersistentVolumeClaim") == []


GOING: dict[str, tuple[list[Json], list[str], bool]] = {
    # what it shows: (the Pods that are there, those that stay, whether all is done)
    "the last goes first": ([pod("cat-0"), pod("cat-1")], ["cat-0"], False),
    "one is going, and is waited for": ([pod("cat-0"), pod("cat-1", going=True)], ["cat-0", "cat-1"], False),
    "only one is left": ([pod("cat-0")], [], False),
    "none is left": ([], [], True),
}


@pytest.mark.parametrize("case", GOING.values(), ids=GOING.keys())
def test_deleted_set_loses_its_pods_one_by_one_from_the_last(case: tuple[list[Json], list[str], bool]) -> None:
    pods, kept, done = case

    answered = HOOK.finalize(request(cats(), pods))

    assert (names(answered["children"], "Pod"), answered["finalized"]) == (kept, done)
