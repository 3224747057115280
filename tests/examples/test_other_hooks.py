"""The hooks of the smaller examples: what each answers to a request."""

import pytest

from .hooks import EXAMPLES, Json, hook_module, names, observed, pod

GOING = "2026-01-01T00:00:00Z"


# -- hello -------------------------------------------------------------------------------------------------------------


def test_hello_is_greeted_in_each_language_and_counts_what_was_seen() -> None:
    parent = {"metadata": {"name": "world"}, "spec": {"who": "Moon"}}

    answered = hook_module("hello").sync({"parent": parent, "children": {"ConfigMap.v1": {"world-english": {}}}})

    assert {child["metadata"]["name"]: child["data"]["greeting"] for child in answered["children"]} == {
        "world-english": "Hello, Moon!",
        "world-french": "Bonjour, Moon!",
        "world-german": "Guten Tag, Moon!",
    }
    assert answered["status"] == {"greetings": 1}


# -- cluster-parent ----------------------------------------------------------------------------------------------------


def team(*there: Json) -> Json:
    """What the hook answers about a team of two environments, with these namespaces there."""
    spec = {"environments": ["dev", "prod"], "pods": 5, "members": ["ann", "bob"]}
    request = {"parent": {"metadata": {"name": "blue"}, "spec": spec}, "children": {"Namespace.v1": observed(*there)}}
    return hook_module("cluster-parent").sync(request)


def test_team_first_gets_its_namespaces() -> None:
    answered = team()

    assert names(answered["children"], "Namespace") == ["blue-dev", "blue-prod"]
    assert len(answered["children"]) == 2
    assert answered["status"] == {"environments": 2, "ready": 0}


def test_namespace_is_filled_once_it_is_there_and_while_it_stays() -> None:
    answered = team({"name": "blue-dev"}, {"name": "blue-prod", "deletionTimestamp": GOING})

    assert names(answered["children"], "ResourceQuota") == ["blue-dev/team"]
    assert names(answered["children"], "ConfigMap") == ["blue-dev/team"]
    assert answered["status"]["ready"] == 1


def test_quota_and_members_say_what_the_team_says() -> None:
    answered = team({"name": "blue-dev"})

    quota, members = answered["children"][2:]
    assert quota["spec"] == {"hard": {"pods": "5"}}
    assert members["data"] == {"members": "ann, bob"}


# -- indexed-job -------------------------------------------------------------------------------------------------------


def job(pods: list[Json], *, completions: int = 4, parallelism: int = 2) -> Json:
    """What the hook answers about a job with these Pods there."""
    template = {"metadata": {"labels": {"app": "job"}}, "spec": {"containers": [{"name": "work", "env": [{"name": "A", "value": "1"}]}]}}
    spec = {"completions": completions, "parallelism": parallelism, "template": template}
    parent = {"metadata": {"name": "job"}, "spec": spec}
    return hook_module("indexed-job").sync({"parent": parent, "children": {"Pod.v1": {each["metadata"]["name"]: each for each in pods}}})


JOBS: dict[str, tuple[list[Json], list[str]]] = {
    # what it shows: (the Pods that are there, those that are wanted)
    "as many as may run begin": ([], ["job-0", "job-1"]),
    "running ones take their places": ([pod("job-0"), pod("job-1", phase="Pending")], ["job-0", "job-1"]),
    "one that succeeded stays and makes room": ([pod("job-0", phase="Succeeded"), pod("job-1")], ["job-0", "job-1", "job-2"]),
    "one that failed goes, and keeps its place till then": ([pod("job-0", phase="Failed"), pod("job-1")], ["job-1"]),
    "one that failed and is gone begins again": ([pod("job-1")], ["job-0", "job-1"]),
    "of one that nobody can see it is believed that it runs": ([pod("job-0", phase="Unknown")], ["job-0", "job-1"]),
    "all that succeeded are kept": ([pod(f"job-{index}", phase="Succeeded") for index in range(4)], ["job-0", "job-1", "job-2", "job-3"]),
}


@pytest.mark.parametrize("case", JOBS.values(), ids=JOBS.keys())
def test_job_runs_each_index_until_it_succeeds_some_at_a_time(case: tuple[list[Json], list[str]]) -> None:
    pods, wanted = case

    assert names(job(pods)["children"], "Pod") == wanted


def test_job_is_done_when_every_index_succeeded() -> None:
    pods = [pod(f"job-{index}", phase="Succeeded") for index in range(4)]

    assert job(pods)["status"] == {"succeeded": 4, "active": 0, "done": True}
    assert not job(pods[:3])["status"]["done"]


def test_pod_of_a_job_knows_its_index_and_is_not_restarted() -> None:
    first = job([])["children"][0]

    assert first["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}, {"name": "JOB_INDEX", "value": "0"}]
    assert first["spec"]["restartPolicy"] == "Never"
    assert first["metadata"]["labels"] == {"app": "job", "job-index": "0"}


# -- copies ------------------------------------------------------------------------------------------------------------


def config_map(name: str = "shared", **content: object) -> Json:
    return {"metadata": {"name": name}, "data": {"a": "1"}, **content}


def test_propagation_asks_for_its_source_and_its_targets() -> None:
    parent = {"spec": {"source": {"namespace": "home", "name": "shared"}, "targets": ["one", "two"]}}

    asked = hook_module("configmap-propagation").customize({"parent": parent})["relatedResources"]

    assert asked == [
        {"apiVersion": "v1", "resource": "configmaps", "namespace": "home", "names": ["shared"]},
        {"apiVersion": "v1", "resource": "namespaces", "names": ["one", "two"]},
    ]


def propagated(sources: Json, *namespaces: str) -> Json:
    """What the hook answers about a propagation with these namespaces there."""
    parent = {"spec": {"source": {"namespace": "home", "name": "shared"}, "targets": ["home", "one", "two"]}}
    related = {"ConfigMap.v1": sources, "Namespace.v1": observed(*[{"name": name} for name in namespaces])}
    return hook_module("configmap-propagation").sync({"parent": parent, "related": related, "children": {"ConfigMap.v1": {}}})


def test_source_is_copied_into_each_target_that_is_there_but_its_own_namespace() -> None:
    answered = propagated({"home/shared": config_map(binaryData={"b": "eA=="})}, "home", "one")

    assert names(answered["children"], "ConfigMap") == ["one/shared"]
    assert answered["children"][0]["data"] == {"a": "1"}
    assert answered["children"][0]["binaryData"] == {"b": "eA=="}
    assert answered["status"] == {"wanted": 3, "copies": 0, "sourceFound": True}


def test_without_its_source_nothing_is_copied() -> None:
    answered = propagated({}, "one", "two")

    assert (answered["children"], answered["status"]["sourceFound"]) == ([], False)


def test_global_config_map_is_copied_everywhere_but_home_and_where_all_goes() -> None:
    parent = {"spec": {"source": {"namespace": "home", "name": "shared"}}}
    namespaces = observed({"name": "home"}, {"name": "one"}, {"name": "two", "deletionTimestamp": GOING})
    related = {"ConfigMap.v1": {"home/shared": config_map()}, "Namespace.v1": namespaces}

    answered = hook_module("global-configmap").sync({"parent": parent, "related": related, "children": {"ConfigMap.v1": {}}})

    assert names(answered["children"], "ConfigMap") == ["one/shared"]
    assert answered["status"] == {"namespaces": 1, "copies": 0}


def test_global_config_map_asks_for_all_namespaces() -> None:
    asked = hook_module("global-configmap").customize({"parent": {"spec": {"source": {"namespace": "home", "name": "shared"}}}})

    assert asked["relatedResources"][1] == {"apiVersion": "v1", "resource": "namespaces", "labelSelector": {}}


def shared(secrets: Json, *namespaces: Json) -> Json:
    """What the hook answers about Secrets that are to be shared with these namespaces."""
    request = {"related": {"Secret.v1": secrets, "Namespace.v1": observed(*namespaces)}, "children": {"Secret.v1": {}}}
    return hook_module("secret-propagation").sync(request)


def secret(name: str, key: str = "k") -> Json:
    return {"metadata": {"name": name, "labels": {"share": "yes"}}, "type": "Opaque", "data": {key: "eA=="}}


def test_each_secret_is_copied_into_each_namespace_that_stays_without_its_labels() -> None:
    answered = shared({"a/one": secret("one"), "b/two": secret("two")}, {"name": "x"}, {"name": "y", "deletionTimestamp": GOING})

    assert sorted(names(answered["children"], "Secret")) == ["x/one", "x/two"]
    assert all("labels" not in child["metadata"] for child in answered["children"])
    assert answered["status"] == {"secrets": 2, "namespaces": 1, "copies": 0}


def test_of_two_secrets_of_one_name_the_first_namespaces_is_shared() -> None:
    answered = shared({"b/same": secret("same", "later"), "a/same": secret("same", "first")}, {"name": "x"})

    assert [child["data"] for child in answered["children"]] == [{"first": "eA=="}]


def test_secrets_are_asked_for_by_the_labels_of_their_namespaces() -> None:
    spec = {
        "from": {"matchLabels": {"gives": "yes"}},
        "secrets": {"matchLabels": {"share": "yes"}},
        "to": {"matchLabels": {"takes": "yes"}},
    }

    secrets, receivers = hook_module("secret-propagation").customize({"parent": {"spec": spec}})["relatedResources"]

    assert (secrets["namespaceSelector"], secrets["labelSelector"]) == (spec["from"], spec["secrets"])
    assert receivers["labelSelector"] == spec["to"]


# -- service-per-pod ---------------------------------------------------------------------------------------------------

PER_POD = hook_module("service-per-pod")


def stateful_set(**spec: object) -> Json:
    annotations = {PER_POD.LABEL: "pod-name"}
    metadata = {"name": "db", "annotations": {PER_POD.PORTS: "80:8080, 443:8443"}}
    return {"metadata": metadata, "spec": {"template": {"metadata": {"annotations": annotations}}, **spec}}


def decorated(obj: Json, *, finalizing: bool = False, attached: Json | None = None) -> Json:
    return PER_POD.services({"object": obj, "finalizing": finalizing, "attachments": {"Service.v1": attached or {}}})


@pytest.mark.parametrize(("spec", "expected"), [({"replicas": 2}, ["db-0", "db-1"]), ({"replicas": 0}, []), ({}, ["db-0"])])
def test_each_pod_of_a_stateful_set_has_a_service(spec: Json, expected: list[str]) -> None:
    assert names(decorated(stateful_set(**spec))["attachments"], "Service") == expected


def test_service_selects_its_pod_and_has_the_annotated_ports() -> None:
    [service] = decorated(stateful_set())["attachments"]

    assert service["spec"]["selector"] == {"pod-name": "db-0"}
    assert service["spec"]["ports"] == [
        {"name": "port-80", "port": 80, "targetPort": 8080},
        {"name": "port-443", "port": 443, "targetPort": 8443},
    ]


@pytest.mark.parametrize(("attached", "done"), [({"db-0": {}}, False), ({}, True)])
def test_services_of_a_stateful_set_that_goes_are_taken_away_first(attached: Json, *, done: bool) -> None:
    assert decorated(stateful_set(), finalizing=True, attached=attached) == {"attachments": [], "finalized": done}


def test_pod_is_labelled_with_its_own_name() -> None:
    request = {"object": {"metadata": {"name": "db-0", "annotations": {PER_POD.LABEL: "pod-name"}}}}

    assert PER_POD.name_label(request) == {"labels": {"pod-name": "db-0"}}


# -- all of them -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", sorted(folder.name for folder in EXAMPLES.iterdir() if (folder / "hook.py").exists()))
def test_every_hook_of_a_controller_is_served_at_its_path(example: str) -> None:
    """The paths in the manifests are those of the program."""
    served = getattr(hook_module(example), "HOOKS", {"/sync": None})
    manifests = (EXAMPLES / example / "controller.yaml").read_text()

    paths = {line.rpartition(":")[2].partition("/")[2].strip() for line in manifests.splitlines() if "url:" in line and "http://" in line}

    assert {f"/{path}" for path in paths} == {*served}
