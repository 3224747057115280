"""A controller is deleted, and some of its parents can't be released: the others are, and everybody hears of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from metaloop.common.api import ON_DELETION_ANNOTATION, RELEASE_FINALIZER, RELEASE_FINALIZERS
from metaloop.common.json import dumps
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.testing.polling import eventually
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.cluster import COMPOSITES, ApiRefused
from metaloop.devkit.testbed.eventually import eventually as comes_true
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.manifests import child_rule
from metaloop.watcher.core.health import HealthSummary
from metaloop.watcher.finalizer_releaser import FinalizerReleaser, ReleaseIntervals

from .scenes import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

AT_ONCE = ReleaseIntervals(check_seconds=0.05, first_seconds=0.0, lease_seconds=0.0)


class Release:
    """A controller that releases its parents when it is deleted, and who does that."""

    def __init__(self, scene: Scene, proxy: ApiProxy) -> None:
        self.scene = scene
        self.proxy = proxy
        self.finalizer = f"metacontroller.io/compositecontroller-{scene.name}"

    async def install(self, **spec: object) -> None:
        """The controller, held by the finalizer for its release."""
        await self.scene.serve_parents()
        manifest = self.scene.manifest(**spec)  # type: ignore[arg-type]
        metadata = {**unstructured.metadata(manifest), "annotations": {ON_DELETION_ANNOTATION: RELEASE_FINALIZERS}}
        await self.scene.cluster.create(COMPOSITES, {**manifest, "metadata": metadata})
        await comes_true(self._is_held)

    async def parents(self, *names: str) -> None:
        """Parents with the controller's finalizer."""
        for name in names:
            await self.scene.create_parent(name)
            await self.scene.cluster.patch(self.scene.parents, self.scene.namespace, name, {"metadata": {"finalizers": [self.finalizer]}})

    def refuse(self, name: str, code: int) -> None:
        """Have the API server refuse every write to a parent."""
        self.proxy.refusals[f"/{self.scene.parents.resource}/{name}"] = code

    async def delete(self) -> None:
        await self.scene.cluster.delete(COMPOSITES, "", self.scene.name)

    async def is_gone(self) -> None:
        expect(await self.scene.cluster.find(COMPOSITES, "", self.scene.name) is None, "the controller is there")

    async def holders(self) -> set[str]:
        found = await self.scene.cluster.list(self.scene.parents, self.scene.namespace)
        return {unstructured.name(each) for each in found if self.finalizer in unstructured.finalizers(each)}

    def health(self) -> HealthSummary:
        return next(each.summary for each in self.scene.watcher.controllers.health() if unstructured.name(each.raw) == self.scene.name)

    def tries(self, name: str) -> int:
        return sum(asked.method == "PATCH" and asked.path.endswith(f"/{name}") for asked in self.proxy.asked)

    async def _is_held(self) -> None:
        found = await self.scene.cluster.get(COMPOSITES, "", self.scene.name)
        expect(RELEASE_FINALIZER in unstructured.finalizers(found), "the controller isn't held")


@pytest_asyncio.fixture(loop_scope="session")
async def release(scene: Scene, proxy: ApiProxy, kube: KubeClient) -> AsyncIterator[Release]:
    watcher = scene.watcher
    releaser = FinalizerReleaser(
        kube,
        controllers=lambda: watcher.controllers,
        served=watcher.served,
        events=watcher.events,
        changed=watcher.changed,
        intervals=AT_ONCE,
    )
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(releaser.run())
        yield Release(scene, proxy)
        proxy.refusals.clear()
        running.cancel()
        await scene.cluster.delete(COMPOSITES, "", scene.name)
        with suppress(ApiRefused):  # it is gone
            await scene.cluster.patch(COMPOSITES, "", scene.name, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("code", [403, 422, 429, 500, 504])
async def test_parent_whose_patch_is_refused_keeps_back_no_other(release: Release, code: int):
    await release.install()
    await release.parents("bad", *(f"good{index}" for index in range(20)))
    release.refuse("bad", code)

    await release.delete()

    await eventually(lambda: release.tries("bad") > 0)
    async with asyncio.timeout(60):
        while await release.holders() != {"bad"}:  # noqa: ASYNC110 - the cluster has no event to wait for
            await asyncio.sleep(0.05)
    await eventually(lambda: "FinalizerNotReleased" in release.scene.heard.of("bad"))
    await release.scene.told("ReleaseFailed")
    assert (release.health().reason, release.health().is_ready) == ("ReleaseFailed", False)
    assert f"{release.scene.parents.resource} {release.scene.namespace}/bad: " in release.health().message


async def test_controller_goes_once_the_parent_can_be_released(release: Release):
    await release.install()
    await release.parents("bad", "good")
    release.refuse("bad", 422)
    await release.delete()
    await release.scene.told("ReleaseFailed")

    release.proxy.refusals.clear()

    await comes_true(release.is_gone)
    assert await release.holders() == set()
    await release.scene.hears(f"Took the finalizer {release.finalizer} off 2 parents, as its annotation asks")


async def test_release_that_fails_is_tried_again_later_and_later(release: Release):
    await release.install()
    await release.parents("bad")
    release.refuse("bad", 422)

    await release.delete()
    await eventually(lambda: release.tries("bad") >= 2)
    await asyncio.sleep(1.5)

    assert release.tries("bad") == 2


async def test_finalizer_that_is_put_back_is_not_removed_without_end(release: Release):
    """An admission webhook may restore it: each write succeeds, and nothing changes."""
    await release.install()
    await release.parents("bad")
    parent = await release.scene.cluster.get(release.scene.parents, release.scene.namespace, "bad")
    release.proxy.forgeries[f"/{release.scene.parents.resource}/bad"] = dumps(parent)

    await release.delete()
    await release.scene.told("the finalizer is put back")

    assert release.tries("bad") <= 8
    release.proxy.forgeries.clear()
    await comes_true(release.is_gone)


async def test_parents_that_cannot_be_listed_are_told_of(release: Release):
    await release.install()
    await release.parents("p")
    await release.scene.runs()
    release.proxy.refusals[f"/{release.scene.parents.resource}"] = 503

    await release.delete()

    await release.scene.told(f"{release.scene.parents.resource} cannot be listed")
    release.proxy.refusals.clear()
    await comes_true(release.is_gone)


async def test_invalid_spec_is_told_with_the_ways_out(release: Release):
    await release.install()
    await release.parents("p")
    await release.scene.edit({"spec": {"childResources": [child_rule(), child_rule()]}})

    await release.delete()

    await release.scene.told("Repair the spec")
    message = release.health().message
    assert f"remove {RELEASE_FINALIZER} from its metadata.finalizers" in message
    assert f"metaloop release-finalizers CompositeController/{release.scene.name}" in message
    assert await release.holders() == {"p"}


async def test_deletion_goes_on_once_the_spec_is_repaired(release: Release):
    await release.install()
    await release.parents("p")
    await release.scene.edit({"spec": {"childResources": [child_rule(), child_rule()]}})
    await release.delete()
    await release.scene.told("Repair the spec")

    await release.scene.edit({"spec": {"childResources": [child_rule()]}})

    await comes_true(release.is_gone)
    assert await release.holders() == set()


async def test_controller_that_cannot_be_held_is_told_and_others_are(release: Release):
    release.proxy.refusals[f"compositecontrollers/{release.scene.name}"] = 403
    await release.scene.serve_parents()
    other = f"other-{release.scene.name}"
    for name in (release.scene.name, other):
        manifest = release.scene.manifest(name)
        metadata = {**unstructured.metadata(manifest), "annotations": {ON_DELETION_ANNOTATION: RELEASE_FINALIZERS}}
        await release.scene.cluster.create(COMPOSITES, {**manifest, "metadata": metadata})

    await release.scene.told("ReleaseFailed")
    await comes_true(lambda: _is_held(release, other))
    await release.scene.cluster.delete(COMPOSITES, "", other)


async def _is_held(release: Release, name: str) -> None:
    found = await release.scene.cluster.get(COMPOSITES, "", name)
    expect(RELEASE_FINALIZER in unstructured.finalizers(found), "the controller isn't held")
