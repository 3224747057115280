"""Two candidates before a real API server: one leads, and the other as soon as it may."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from metaloop.common.kube.client import KubeClient
from metaloop.common.testing.polling import eventually
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.cluster import Cluster
from metaloop.devkit.testbed.eventually import eventually as eventually_true
from metaloop.watcher.core.election import SHORTEST_SECONDS, Election
from metaloop.watcher.leader import LEASES, Leader

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

LEASE_SECONDS = 6


class Candidate:
    """A leader-to-be that notes when it reigns."""

    def __init__(self, kube: KubeClient, namespace: str, identity: str, *, lease_seconds: int = LEASE_SECONDS) -> None:
        election = Election(identity=identity, lease_seconds=lease_seconds)
        self.election = election
        self.leader = Leader(kube, election, namespace=namespace, name="lease")
        self.reigns = False
        self.task: asyncio.Task[None] | None = None

    async def reign(self) -> None:
        self.reigns = True
        try:
            await asyncio.Event().wait()
        finally:
            self.reigns = False


@asynccontextmanager
async def running(*candidates: Candidate) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        for candidate in candidates:
            candidate.task = tasks.create_task(candidate.leader.run(candidate.reign))
        yield
        for candidate in candidates:
            assert candidate.task is not None
            candidate.task.cancel()


async def test_one_of_two_reigns_and_the_other_within_two_seconds_of_its_resignation(kube: KubeClient, namespace: str):
    candidates = [Candidate(kube, namespace, "a"), Candidate(kube, namespace, "b")]
    async with running(*candidates):
        await eventually(lambda: any(each.reigns for each in candidates))
        first = next(each for each in candidates if each.reigns)
        second = next(each for each in candidates if each is not first)

        assert first.task is not None
        first.task.cancel()

        await eventually(lambda: second.reigns, within_seconds=2)
        assert not first.reigns
        assert not first.leader.leads()


async def test_who_is_told_of_a_resignation_reigns_at_once(kube: KubeClient, namespace: str):
    first, second = (Candidate(kube, namespace, name, lease_seconds=600) for name in "ab")
    async with running(first):
        await eventually(lambda: first.reigns)
        async with running(second):
            await eventually(lambda: second.election.record.holder == "a")  # by itself it looks again in half a minute

            async def herald() -> None:
                second.leader.wake()

            first.leader.on_resigned = herald
            assert first.task is not None
            first.task.cancel()

            await eventually(lambda: second.reigns, within_seconds=1)


@pytest.mark.parametrize("lease_seconds", [SHORTEST_SECONDS, LEASE_SECONDS])
async def test_a_leader_that_cannot_renew_is_done_before_another_begins(
    plane: ControlPlane, proxy: ApiProxy, kube: KubeClient, namespace: str, lease_seconds: int
):
    async with KubeClient.connect(str(plane.kubeconfig_path)) as straight:
        cut_off = Candidate(kube, namespace, "cut-off", lease_seconds=lease_seconds)
        other = Candidate(straight, namespace, "other", lease_seconds=lease_seconds)
        async with running(cut_off):
            await eventually(lambda: cut_off.reigns)
            async with running(other):
                proxy.freeze()

                await eventually(lambda: not cut_off.reigns, within_seconds=lease_seconds)
                assert not other.reigns
                await eventually(lambda: other.reigns, within_seconds=2 * lease_seconds)

                assert not cut_off.leader.leads()
                proxy.thaw()


async def test_a_leader_that_is_cut_off_gives_way_to_one_who_is_not(kube: KubeClient, namespace: str):
    first, second = Candidate(kube, namespace, "a"), Candidate(kube, namespace, "b")
    async with running(first):
        await eventually(lambda: first.reigns)
        async with running(second):
            first.leader.is_cut_off = lambda: True

            await eventually(lambda: second.reigns, within_seconds=LEASE_SECONDS)

            assert not first.reigns
            assert not first.leader.leads()


async def test_where_all_are_cut_off_nobody_changes_places(kube: KubeClient, namespace: str):
    first, second = Candidate(kube, namespace, "a"), Candidate(kube, namespace, "b")
    async with running(first):
        await eventually(lambda: first.reigns)
        async with running(second):
            first.leader.is_cut_off = second.leader.is_cut_off = lambda: True
            await eventually(lambda: second.election.record.is_cut_off)
            renewals: set[str] = set()

            def is_renewed() -> bool:
                renewals.add(second.election.record.renewed)
                return len(renewals) >= 4

            await eventually(is_renewed)
            first.leader.is_cut_off = lambda: False
            await eventually(lambda: not second.election.record.is_cut_off)

            assert first.reigns
            assert second.election.record.transitions == 0


async def test_a_lease_that_makes_no_sense_for_a_moment_costs_nobody_the_leadership(kube: KubeClient, proxy: ApiProxy, namespace: str):
    first, second = Candidate(kube, namespace, "a"), Candidate(kube, namespace, "b")
    async with running(first):
        await eventually(lambda: first.reigns)
        async with running(second):
            asked = len(proxy.asked)
            proxy.forgeries["/leases"] = b"<html>"
            await eventually(lambda: {each.method for each in proxy.asked[asked:]} >= {"GET", "PUT"})
            proxy.forgeries.clear()
            renewed = first.election.record.renewed
            await eventually(lambda: first.election.record.renewed != renewed)

            assert first.reigns
            assert not second.reigns


async def test_a_lease_that_is_deleted_is_made_anew_by_its_leader(kube: KubeClient, cluster: Cluster, namespace: str):
    candidate = Candidate(kube, namespace, "a")
    async with running(candidate):
        await eventually(lambda: candidate.reigns)

        await cluster.delete(LEASES, namespace, "lease")

        await eventually_true(lambda: cluster.get(LEASES, namespace, "lease"))
        assert candidate.reigns
