"""`metaloop plan` and `metaloop release-finalizers`, in a cluster where no service of ours runs: the first writes
nothing, the second what it says.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.common.api.revision import REVISIONS
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import reference_to
from metaloop.devkit.dryrun.gateway import GatewayAddress, local_gateway
from metaloop.devkit.testbed.cluster import COMPONENTS, COMPOSITES, CONFIG_MAPS, DECORATORS, MAPS
from metaloop.devkit.testbed.lab import Platform, install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite, config_map, parent
from metaloop.devkit.testbed.mapping import copying
from metaloop.devkit.testbed.story import THINGS, answer_with, config_maps_of
from metaloop.devkit.testbed.webhook import Behaviour, Reply, Webhook
from metaloop.devkit.workdir import run_folder

_COMMAND = (sys.executable, "-c", "from metaloop.devkit.cli import main; main()")
_HARMLESS = {"get", "list"}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A cluster with a controller that nobody serves, and somebody who types commands."""

    platform: Platform
    webhook: Webhook
    gateway: GatewayAddress
    """A hook gateway that runs already."""

    async def types(self, *arguments: str) -> Ended:
        """Runs `metaloop` with these arguments."""
        environment = {**os.environ, "KUBECONFIG": str(self.platform.plane.kubeconfig_path), "COLUMNS": "200"}
        process = await asyncio.create_subprocess_exec(
            *_COMMAND, *arguments, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), 110)
        return Ended(process.returncode or 0, out.decode(), err.decode())

    async def plans(self, *arguments: str) -> Ended:
        """Runs `metaloop plan` with these arguments, through the gateway that runs already."""
        return await self.types("plan", *arguments, "--gateway-url", self.gateway.url, "--gateway-token", self.gateway.token)

    async def controller(self, name: str, behaviour: Behaviour, **spec: object) -> None:
        """A controller of the things that are labelled with its name."""
        url = self.webhook.on(name, behaviour)
        rule = {"apiVersion": THINGS.api_version, "resource": THINGS.resource, "labelSelector": {"matchLabels": {"of": name}}}
        manifest = composite(name, parent=THINGS, hook_url=url, children=[child_rule()], **{"parentResource": rule, **spec})
        await self.platform.cluster.create(COMPOSITES, manifest)

    async def decorator(self, name: str, behaviour: Behaviour, **spec: object) -> None:
        """A decorator of the same things."""
        rule = {"apiVersion": THINGS.api_version, "resource": THINGS.resource, "labelSelector": {"matchLabels": {"of": name}}}
        hooks = {"sync": {"webhook": {"url": self.webhook.on(name, behaviour)}}}
        manifest: JsonObject = {
            "apiVersion": DECORATORS.api_version,
            "kind": DECORATORS.kind,
            "metadata": {"name": name},
            "spec": {"resources": [rule], "hooks": hooks, **spec},  # type: ignore[dict-item]
        }
        await self.platform.cluster.create(DECORATORS, manifest)

    async def parent(self, name: str, *, of: str, **spec: object) -> JsonObject:
        """A parent in the namespace `default`."""
        obj = parent(THINGS, name, namespace="default", labels={"of": of}, spec=dict(spec))  # type: ignore[arg-type]
        return await self.platform.cluster.create(THINGS, obj, namespace="default")

    async def child(self, name: str, *, of: JsonObject, owned: bool = True, text: str = "") -> None:
        """A ConfigMap of a parent, or an orphan that it may adopt."""
        obj = config_map(name, labels={"parent": unstructured.name(of)}, data={"text": text})
        if owned:
            unstructured.metadata(obj)["ownerReferences"] = [reference_to(of)]
        await self.platform.cluster.create(CONFIG_MAPS, obj, namespace="default")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk(assets: Path) -> AsyncIterator[Desk]:
    with run_folder() as folder:
        async with (
            Platform.start(assets, folder) as platform,
            Webhook.serve() as webhook,
            local_gateway(folder, kubeconfig=str(platform.plane.kubeconfig_path)) as gateway,
        ):
            await install_parent(platform.cluster, THINGS)
            yield Desk(platform=platform, webhook=webhook, gateway=gateway)


def three(request: JsonObject) -> JsonObject:
    """Three ConfigMaps with the parent's text."""
    return answer_with(request, config_maps_of(request))


async def test_plan_of_a_new_parent_names_each_write_and_does_none(desk: Desk) -> None:
    await desk.controller("fresh", three)
    await desk.parent("new", of="fresh", text="hello")
    mark = desk.platform.audit.mark()

    ended = await desk.types("plan", "thing/new")

    assert ended.code == 0, ended.err
    assert "starting a hook gateway" in ended.err
    assert "CompositeController/fresh: Thing default/new" in ended.out
    assert "+ 1. create ConfigMap default/new-0: desired, and not there" in ended.out
    assert "+  text: hello" in ended.out
    assert "~ 4. update Thing default/new (status)" in ended.out
    assert "+children: 0" in ended.out
    assert "4 writes would be done, and none was" in ended.out
    requests = await desk.platform.audit.ours_since(mark)
    assert requests
    assert {request.verb for request in requests} <= _HARMLESS
    assert await desk.platform.cluster.list(CONFIG_MAPS, "default", labels="parent=new") == []


async def test_plan_shows_what_differs_what_goes_and_what_is_adopted(desk: Desk) -> None:
    await desk.controller("settled", three)
    owner = await desk.parent("old", of="settled", text="after", count=2)
    await desk.child("old-0", of=owner, text="before")
    await desk.child("old-1", of=owner, owned=False, text="after")
    await desk.child("old-9", of=owner)
    mark = desk.platform.audit.mark()

    ended = await desk.plans("settled", "default/old", "--output", "json")

    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    writes = {(write["verb"], write["object"]): write for write in told["writes"]}
    assert set(writes) == {
        ("adopt", "ConfigMap default/old-1"),
        ("delete", "ConfigMap default/old-9"),
        ("update", "ConfigMap default/old-0"),
        ("update", "ConfigMap default/old-1"),
        ("update", "Thing default/old"),
    }
    assert {"-  text: before", "+  text: after"} <= set(writes["update", "ConfigMap default/old-0"]["diff"])
    assert told["outcome"]["result"] == "done"
    assert (told["controller"], told["parent"]) == ("CompositeController/settled", "Thing default/old")
    assert {request.verb for request in await desk.platform.audit.ours_since(mark)} <= _HARMLESS


@pytest.mark.parametrize(("options", "planned"), [((), 5), (("--parts", "0"), 7), (("--parts", "2"), 2), (("--part", "in-3"), 1)])
async def test_plan_of_a_map_controller_shows_some_inputs_or_all(desk: Desk, options: tuple[str, ...], planned: int) -> None:
    name = f"maps-{planned}"
    maps: JsonObject = {"apiVersion": "v1", "resource": "configmaps"}
    spec: JsonObject = {
        "parentResource": {"apiVersion": THINGS.api_version, "resource": THINGS.resource, "labelSelector": {"matchLabels": {"of": name}}},
        "inputResources": [maps],
        "outputResources": [maps],
        "hooks": {"map": {"webhook": {"url": desk.webhook.on(name, copying("copy"))}}},
    }
    manifest: JsonObject = {"apiVersion": MAPS.api_version, "kind": MAPS.kind, "metadata": {"name": name}, "spec": spec}
    await desk.platform.cluster.create(MAPS, manifest)
    await desk.parent(name, of=name, selector={"matchLabels": {"for": name}})
    for number in range(7):
        source = config_map(f"in-{number}" if planned == 1 else f"{name}-{number}", labels={"for": name})
        await desk.platform.cluster.create(CONFIG_MAPS, source, namespace="default")
    mark = desk.platform.audit.mark()

    ended = await desk.plans(f"{MAPS.kind}/{name}", f"default/{name}", *options, "--output", "json")

    assert ended.code == 0, ended.err
    parts = json.loads(ended.out)["parts"]
    assert [[write["verb"] for write in part["writes"]] for part in parts] == [["create"]] * planned
    assert ("other parts were not planned" in ended.err) == (planned < 7)
    assert {each.verb for each in await desk.platform.audit.ours_since(mark)} <= _HARMLESS


async def test_plan_of_a_component_shows_all_waves(desk: Desk) -> None:
    later: JsonObject = {"plans.example.com/apply-order": "1"}
    waits: JsonObject = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "plan-front", "annotations": later}, "spec": {}}
    children = [waits, config_map("plan-settings"), config_map("plan-taken")]
    await desk.platform.cluster.create(CONFIG_MAPS, config_map("plan-taken"), namespace="default")
    spec: JsonObject = {
        "prefix": "plans.example.com",
        "parentResource": {
            "apiVersion": THINGS.api_version,
            "resource": THINGS.resource,
            "labelSelector": {"matchLabels": {"of": "waves"}},
        },
        "policies": {"adoption": "Never"},
        "generator": {"webhook": {"url": desk.webhook.on("waves", lambda _: {"children": [*children]})}},
    }
    manifest: JsonObject = {"apiVersion": COMPONENTS.api_version, "kind": COMPONENTS.kind, "metadata": {"name": "waves"}, "spec": spec}
    await desk.platform.cluster.create(COMPONENTS, manifest)
    await desk.parent("waves", of="waves")
    mark = desk.platform.audit.mark()

    ended = await desk.plans("waves", "default/waves")

    assert ended.code == 0, ended.err
    assert [line for line in ended.out.splitlines() if line[:1] in "!+" and ". " in line] == [
        "+ 1. create ConfigMap default/plan-settings: it does not exist",
        "! 2. refuse ConfigMap default/plan-taken: ConfigMap default/plan-taken exists and is nobody's: its adoption policy is Never",
        "+ 3. create Service default/plan-front: it does not exist",
    ]
    assert ended.out.index("wave 0:") < ended.out.index("plan-settings") < ended.out.index("wave 1:") < ended.out.index("plan-front")
    assert {request.verb for request in await desk.platform.audit.ours_since(mark)} <= _HARMLESS


async def test_plan_says_why_a_sync_would_fail(desk: Desk) -> None:
    await desk.controller("broken", lambda _: Reply(body=b"sorry", status=500))
    await desk.parent("unlucky", of="broken")

    ended = await desk.plans("broken", "default/unlucky")

    assert ended.code == 0, ended.err
    assert "The sync would end with" in ended.out
    assert "500" in ended.out
    assert "! event: Warning SyncError on Thing default/unlucky" in ended.out


async def test_plan_of_what_nobody_serves_says_so(desk: Desk) -> None:
    await desk.controller("lonely", three)

    ended = await desk.plans("thing/nobody")

    assert ended.code == 1
    assert "there is no thing default/nobody" in ended.err


async def test_finalizers_of_a_controller_that_is_gone_are_released(desk: Desk) -> None:
    mine, other = "metacontroller.io/compositecontroller-gone", "testbed.example.com/other"
    for name in ("stranded-1", "stranded-2"):
        await desk.parent(name, of="gone")
        await desk.platform.cluster.patch(THINGS, "default", name, {"metadata": {"finalizers": [other, mine]}})

    looked = await desk.types("release-finalizers", "cc/gone", "--dry-run")
    assert looked.code == 0, looked.err
    assert "things default/stranded-1\nthings default/stranded-2\n" in looked.out
    assert (await _finalizers(desk, "stranded-1")) == [other, mine]
    ended = await desk.types("release-finalizers", "CompositeController/gone")

    assert ended.code == 0, ended.err
    assert "2 objects had the finalizer" in ended.err
    for name in ("stranded-1", "stranded-2"):
        assert (await _finalizers(desk, name)) == [other]


async def test_finalizers_of_a_live_controller_are_not_released(desk: Desk) -> None:
    await desk.controller("alive", three)

    ended = await desk.types("release-finalizers", "CompositeController/alive", "--resource", "things")

    assert ended.code == 1
    assert "CompositeController alive still exists" in ended.err


async def _finalizers(desk: Desk, name: str) -> list[str]:
    return unstructured.finalizers(await desk.platform.cluster.get(THINGS, "default", name))


async def test_plan_in_the_middle_of_a_rollout_shows_who_changes_revisions(desk: Desk) -> None:
    await desk.controller("midway", three, childResources=[child_rule(method="RollingInPlace")])
    owner = await desk.parent("midway", of="midway", count=2, text="before")
    for name in ("midway-0", "midway-1"):
        await desk.child(name, of=owner, text="before")
    first = json.loads((await desk.plans("midway", "default/midway", "-o", "json")).out)["writes"][0]["after"]
    await desk.platform.cluster.create(REVISIONS, first, namespace="default")
    await desk.platform.cluster.patch(THINGS, "default", "midway", {"spec": {"text": "after"}})
    mark = desk.platform.audit.mark()

    ended = await desk.plans("midway", "default/midway", "-o", "json")

    writes = json.loads(ended.out)["writes"]
    told = [(write["verb"], write["kind"]) for write in writes]
    assert told[:2] == [("create", "ControllerRevision"), ("update", "ControllerRevision")]
    assert ("update", "ConfigMap") in told
    assert [line for line in writes[1]["diff"] if line[0] in "+-"] == ["-  - midway-0"]
    assert {request.verb for request in await desk.platform.audit.ours_since(mark)} <= _HARMLESS


async def test_plan_of_a_decorated_object_through_a_gateway_that_runs_elsewhere(desk: Desk) -> None:
    def labels(request: JsonObject) -> JsonObject:
        shown = unstructured.name(unstructured.child_object(request, "object"))
        return {"labels": {"seen": shown}, "attachments": [config_map("attached")]}

    await desk.decorator(
        "tags",
        labels,
        resources=[{"apiVersion": "v1", "resource": "configmaps", "labelSelector": {"matchLabels": {"decorate": "me"}}}],
        attachments=[{"apiVersion": "v1", "resource": "configmaps"}],
    )
    await desk.platform.cluster.create(CONFIG_MAPS, config_map("subject", labels={"decorate": "me"}), namespace="default")
    mark = desk.platform.audit.mark()

    ended = await desk.plans("configmap/subject")

    assert ended.code == 0, ended.err
    assert "+ 1. create ConfigMap default/attached" in ended.out
    assert "+    seen: subject" in ended.out
    assert "starting a hook gateway" not in ended.err
    assert {request.verb for request in await desk.platform.audit.ours_since(mark)} <= _HARMLESS
