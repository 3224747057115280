"""ComponentControllers: what a hook answers is applied, listed in the status, and removed, in order."""

import pytest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.builtin import SECRETS
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story

from .deployed import DEPLOYMENTS, PREFIX, Deployed, annotated, answering, deployment, namespace

ROLES = ResourceInfo(api_version="rbac.authorization.k8s.io/v1", resource="roles", kind="Role", namespaced=True)
BINDINGS = ResourceInfo(api_version="rbac.authorization.k8s.io/v1", resource="rolebindings", kind="RoleBinding", namespaced=True)


@pytest.fixture
def deployed(story: Story) -> Deployed:
    return Deployed(story=story)


async def test_component_is_applied_in_waves_and_removed_in_order(deployed: Deployed) -> None:
    within = f"{deployed.name}-app"
    settings: JsonObject = {**config_map("settings", data={"a": "b"}, namespace=within)}
    web = deployment("web", apply_order="1", delete_order="-1")
    web["metadata"] = {**unstructured.metadata(web), "namespace": within}
    await deployed.install(answering(web, settings, namespace(within), status={"url": "http://web"}))

    await deployed.story.parent("app")

    await eventually(lambda: deployed.exists(DEPLOYMENTS, "web", within=within))
    waiting = await eventually(lambda: deployed.is_in_state("Processing", reason="Processing", containing="Deployment"))
    assert waiting["url"] == "http://web"
    await deployed.has({f"Namespace {within}": "Ready", "ConfigMap settings": "Ready", "Deployment web": "Creating"})
    found = await deployed.exists(CONFIG_MAPS, "settings", within=within)
    assert f"{PREFIX}/owner-id" in unstructured.labels(found)
    assert "ownerReferences" not in unstructured.metadata(found)

    await deployed.becomes_available("web", within=within)
    await eventually(lambda: deployed.is_in_state("Ready", reason="Ready"))
    await deployed.has({f"Namespace {within}": "Ready", "ConfigMap settings": "Ready", "Deployment web": "Ready"})

    await deployed.delete()
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))
    await deployed.is_gone(CONFIG_MAPS, "settings", within=within)
    await deployed.is_gone(DEPLOYMENTS, "web", within=within)
    await deployed.is_gone(NAMESPACES, within)


async def test_component_at_rest_is_neither_asked_about_nor_written(deployed: Deployed) -> None:
    await deployed.install(answering(*(config_map(name, data={"a": name}) for name in "abc")))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))
    # A pass that the echoes of the first one cause may still be under way.
    await steadily(deployed.story.no_more_than(len(deployed.calls()) + 1, "generate"), for_seconds=1.0)
    calls, mark = len(deployed.calls()), deployed.story.lab.audit.mark()

    await steadily(deployed.story.no_more_than(calls, "generate"), for_seconds=1.0)

    assert await deployed.story.writes_since(mark) == []


async def test_changed_object_is_written_back_at_once(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a", data={"k": "v"})))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))

    await deployed.story.cluster.patch(CONFIG_MAPS, deployed.name, "a", {"data": {"k": "w"}})

    async def is_back() -> None:
        found = await deployed.exists(CONFIG_MAPS, "a")
        expect(found["data"] == {"k": "v"}, f"the data are {found['data']}")

    await eventually(is_back)


async def test_object_that_is_no_longer_desired_is_deleted(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a"), config_map("b")))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))

    deployed.story.now_answers(answering(config_map("b")), "generate")
    await deployed.story.change("app", text="changed")

    await eventually(lambda: deployed.is_gone(CONFIG_MAPS, "a"))
    await eventually(lambda: deployed.has({"ConfigMap b": "Ready"}))


async def test_invalid_object_touches_nothing(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a"), annotated(config_map("b"), apply_order="soon")))
    await deployed.story.parent("app")

    await eventually(lambda: deployed.is_in_state("Error", reason="InvalidAnswer", containing="apply-order"))

    assert await deployed.phases() == {}
    await deployed.is_gone(CONFIG_MAPS, "a")


async def test_object_of_somebody_else_is_not_taken_over(deployed: Deployed) -> None:
    await deployed.story.cluster.create(CONFIG_MAPS, config_map("a", data={"whose": "mine"}), namespace=deployed.name)
    await deployed.install(answering(config_map("a", data={"whose": "theirs"})), policies={"adoption": "Never"})
    await deployed.story.parent("app")

    await eventually(lambda: deployed.is_in_state("Error", reason="NameTaken", containing="its adoption policy is Never"))

    assert (await deployed.exists(CONFIG_MAPS, "a"))["data"] == {"whose": "mine"}


async def test_object_of_nobody_is_adopted(deployed: Deployed) -> None:
    await deployed.story.cluster.create(CONFIG_MAPS, config_map("a", data={"whose": "nobody's"}), namespace=deployed.name)
    await deployed.install(answering(config_map("a", data={"whose": "ours"})))
    await deployed.story.parent("app")

    await eventually(lambda: deployed.is_in_state("Ready"))

    assert (await deployed.exists(CONFIG_MAPS, "a"))["data"] == {"whose": "ours"}


async def test_orphaned_object_stays_when_its_component_goes(deployed: Deployed) -> None:
    await deployed.install(answering(annotated(config_map("a"), delete_policy="orphan-on-delete"), config_map("b")))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))

    await deployed.delete()
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))

    await deployed.is_gone(CONFIG_MAPS, "b")
    await deployed.exists(CONFIG_MAPS, "a")


async def test_inventory_may_be_in_config_maps(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a"), config_map("b")), inventoryStorage="ConfigMap")
    await deployed.story.parent("app")
    status = await eventually(lambda: deployed.is_in_state("Ready"))
    assert "inventory" not in status
    await eventually(lambda: deployed.lists("a", "b"))

    deployed.story.now_answers(answering(config_map("b")), "generate")
    await deployed.story.change("app", text="changed")
    await eventually(lambda: deployed.is_gone(CONFIG_MAPS, "a"))
    await eventually(lambda: deployed.lists("b"))

    await deployed.delete()
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))
    await deployed.is_gone(CONFIG_MAPS, "b")


async def test_objects_are_written_with_the_rights_of_the_service_account(deployed: Deployed) -> None:
    cluster, name = deployed.story.cluster, deployed.name
    rules: JsonValue = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "delete"]}]
    subject: JsonObject = {"kind": "ServiceAccount", "name": "deployer", "namespace": name}
    reference: JsonObject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"}
    await cluster.create(ROLES, {"metadata": {"name": "deployer"}, "rules": rules}, namespace=name)
    await cluster.create(BINDINGS, {"metadata": {"name": "deployer"}, "subjects": [subject], "roleRef": reference}, namespace=name)
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "forbidden"}}
    await deployed.install(answering(config_map("allowed"), annotated(secret, apply_order="1")), defaultServiceAccount="deployer")

    await deployed.story.parent("app")

    await eventually(lambda: deployed.exists(CONFIG_MAPS, "allowed"))
    await eventually(lambda: deployed.is_in_state("Error", containing=f"system:serviceaccount:{name}:deployer"))
    await deployed.is_gone(SECRETS, "forbidden")
