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
from metaloop.watcher import leader
from metaloop.watcher.core.election import SHORTEST_SECONDS, Election
from metaloop.watcher.leader import LEASES

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

LEASE_SECONDS = 6


class Candidate:
    """A candidate that notes when it leads, and is cut off from the broker when a test says so."""

    def __init__(self, kube: KubeClient, namespace: str, identity: str, *, lease_seconds: int = LEASE_SECONDS) -> None:
        self.election = Election(identity=identity, lease_seconds=lease_seconds)
        self.leader = leader.Candidate(
            kube,
            self.election,
            lease=(namespace, "lease"),
            announce_resignation=self.announce_resignation,
            is_cut_off=lambda: self.is_cut_off,
        )
        self.is_cut_off = False
        self.told: list[leader.Candidate] = []
        """Who hears of its resignation."""
        self.leads = False
        self.task: asyncio.Task[None] | None = None

    async def term(self) -> None:
        self.leads = True
        try:
            await asyncio.Event().wait()
        finally:
            self.leads = False

    async def announce_resignation(self) -> None:
        for other in self.told:
            other.wake()


@asynccontextmanager
async def running(*candidates: Candidate) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        for candidate in candidates:
            candidate.task = tasks.create_task(candidate.leader.run(candidate.term))
        yield
        for candidate in candidates:
            assert candidate.task is not None
            candidate.task.cancel()


async def test_one_of_two_leads_and_the_other_soon_after_its_resignation(kube: KubeClient, namespace: str):
    candidates = [Candidate(kube, namespace, name, lease_seconds=60) for name in "ab"]
    async with running(*candidates):
        await eventually(lambda: any(each.leads for each in candidates))
        first = next(each for each in candidates if each.leads)
        second = next(each for each in candidates if each is not first)

        assert first.task is not None
        first.task.cancel()

        await eventually(lambda: second.leads)  # a lease that is not given back lasts for a minute
        assert not first.leads
        assert not first.leader.leads()


async def test_candidate_that_is_told_of_a_resignation_leads_at_once(kube: KubeClient, namespace: str):
    first, second = (Candidate(kube, namespace, name, lease_seconds=600) for name in "ab")
    async with running(first):
        await eventually(lambda: first.leads)
        async with running(second):
            await eventually(lambda: second.election.record.holder == "a")  # by itself it looks again in half a minute

            first.told.append(second.leader)
            assert first.task is not None
            first.task.cancel()

            await eventually(lambda: second.leads, within_seconds=20)


@pytest.mark.parametrize("lease_seconds", [SHORTEST_SECONDS, LEASE_SECONDS])
async def test_a_leader_that_cannot_renew_is_done_before_another_begins(
    plane: ControlPlane, proxy: ApiProxy, kube: KubeClient, namespace: str, lease_seconds: int
):
    async with KubeClient.connect(str(plane.kubeconfig_path)) as straight:
        cut_off = Candidate(kube, namespace, "cut-off", lease_seconds=lease_seconds)
        other = Candidate(straight, namespace, "other", lease_seconds=lease_seconds)
        async with running(cut_off):
            await eventually(lambda: cut_off.leads)
            async with running(other):
                proxy.freeze()

                await eventually(lambda: not cut_off.leads)
                assert not other.leads
                await eventually(lambda: other.leads)

                assert not cut_off.leader.leads()
                proxy.thaw()


async def test_a_leader_that_is_cut_off_gives_way_to_one_who_is_not(kube: KubeClient, namespace: str):
    first, second = Candidate(kube, namespace, "a"), Candidate(kube, namespace, "b")
    async with running(first):
        await eventually(lambda: first.leads)
        async with running(second):
            first.is_cut_off = True

            await eventually(lambda: second.leads)

            assert not first.leads
            assert not first.leader.leads()


async def test_where_all_are_cut_off_nobody_changes_places(kube: KubeClient, namespace: str):
    first, second = Candidate(kube, namespace, "a"), Candidate(kube, namespace, "b")
    async with running(first):
        await eventually(lambda: first.leads)
        async with running(second):
            first.is_cut_off = second.is_cut_off = True
            await eventually(lambda: second.election.record.is_cut_off)
            renewals: set[str] = set()

            def is_renewed() -> bool:
                renewals.add(second.election.record.renewed)
                return len(renewals) >= 4

            await eventually(is_renewed)
            first.is_cut_off = False
            await eventually(lambda: not second.election.record.is_cut_off)

            assert first.leads
            assert second.election.record.transitions == 0


async def test_a_lease_that_makes_no_sense_for_a_moment_costs_nobody_the_leadership(kube: KubeClient, proxy: ApiProxy, namespace: str):
    first, second = Candidate(kube, namespace, "a"), Candidate(kube, namespace, "b")
    async with running(first):
        await eventually(lambda: first.leads)
        async with running(second):
            asked = len(proxy.asked)
            proxy.forgeries["/leases"] = b"<html>"
            await eventually(lambda: {each.method for each in proxy.asked[asked:]} >= {"GET", "PUT"})
            proxy.forgeries.clear()
            renewed = first.election.record.renewed
            await eventually(lambda: first.election.record.renewed != renewed)

            assert first.leads
            assert not second.leads


async def test_a_lease_that_is_deleted_is_made_anew_by_its_leader(kube: KubeClient, cluster: Cluster, namespace: str):
    candidate = Candidate(kube, namespace, "a")
    async with running(candidate):
        await eventually(lambda: candidate.leads)

        await cluster.delete(LEASES, namespace, "lease")

        await eventually_true(lambda: cluster.get(LEASES, namespace, "lease"))
        assert candidate.leads
