"""Defaults of a real API server in applied children are not a difference, and drift is."""

import pytest
from onechild import OneChild

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.devkit.testbed.kinds import KINDS, manifest, patched
from metaloop.reconciler.schemas import Schemas

pytestmark = pytest.mark.e2e

STRATEGIES = ["dynamic-apply", "server-side-apply"]


@pytest.fixture(params=KINDS.keys())
def child(request: pytest.FixtureRequest, kube: KubeClient, schemas: Schemas, parent: JsonObject) -> OneChild:
    """A child of each kind."""
    return OneChild(kube=kube, schemas=schemas, parent=parent, info=KINDS[request.param].info, name="a", strategy="")


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_child_that_was_applied_is_at_rest_and_drift_is_repaired_once(child: OneChild, strategy: str, namespace: str):
    kind = KINDS[child.info.kind]
    child.strategy, child.name = strategy, namespace
    desired = manifest(kind, child.name, namespace=namespace)

    created = await child.sync(desired)
    at_rest = await child.sync(desired)
    drifted = await child.patch(kind.drift)
    repaired = await child.sync(desired)
    again = await child.sync(desired)

    assert [len(effects.done) for effects in (created, at_rest, repaired, again)] == [1, 0, 1, 0]
    assert [effects.failures for effects in (created, at_rest, repaired, again)] == [()] * 4
    assert patched(drifted, kind.drift) == drifted
    live = await child.existing()
    assert patched(live, kind.drift) != live
