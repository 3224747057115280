import asyncio
from collections import Counter
from random import Random

import pytest
from virtual import network, on_virtual_time

from metaloop.common.kube.transport import Request
from metaloop.simulation.__main__ import run_crash
from metaloop.simulation.cluster.server import ApiServer
from metaloop.simulation.faultplan import INCIDENTS, CrashPoint, FaultPlan, Kind, RandomFaults, api_server_lags
from metaloop.simulation.history import History
from metaloop.simulation.network import DELIVERED, NORMAL, Answered, Port
from metaloop.simulation.world import World

POST = Request(method="POST", target="/api/v1/namespaces/default/configmaps")
GET = Request(method="GET", target="/api/v1/namespaces/default/configmaps/a")


def fates(plan: FaultPlan, request: Request, *, count: int = 5000) -> Counter[Answered]:
    return Counter(plan.of_request("reconciler-1", request).answered for _ in range(count))


def test_without_faults_everything_works():
    plan = FaultPlan()

    assert plan.of_request("reconciler-1", POST) == NORMAL
    assert plan.of_message("reconciler-1", ("claim", "0")) == DELIVERED
    assert plan.of_watch_event("watcher-1") == 0.0


def test_only_writes_are_executed_and_answered_otherwise():
    plan = RandomFaults("1", kinds=[Kind.REQUESTS], factor=4.0)

    assert set(fates(plan, POST)) == {*Answered}
    assert set(fates(plan, GET)) == {Answered.SERVED, Answered.REFUSED, Answered.UNSENT}


def test_only_jobs_arrive_twice():
    plan = RandomFaults("1", kinds=[Kind.MESSAGES], factor=4.0)

    copies = {subject: {len(plan.of_message("a", (subject, "x")).delays) for _ in range(3000)} for subject in ("job", "claim")}

    assert copies == {"job": {0, 1, 2}, "claim": {0, 1}}


def test_kinds_that_a_run_does_not_have_never_strike():
    plan = RandomFaults("1", kinds=[Kind.CRASHES], factor=4.0)

    assert set(fates(plan, POST)) == {Answered.SERVED}


def test_a_seed_decides_what_strikes():
    first, second, other = (fates(RandomFaults(seed, kinds=[Kind.REQUESTS], factor=4.0), POST) for seed in ("1", "1", "2"))

    assert first == second != other


def test_an_api_server_that_lags_shows_everything_late_to_one_process():
    plan = RandomFaults("1", kinds=[Kind.LAGS], factor=4.0)
    plan.lagging = "watcher-1"

    late = {process: {plan.of_watch_event(process) for _ in range(50)} for process in ("watcher-1", "watcher-2")}

    assert late == {"watcher-1": {4.0}, "watcher-2": {0.0}}


def test_a_lag_ends_by_itself():
    async def main() -> list[str]:
        world = World(seed="1", plan=RandomFaults("1", kinds=[Kind.CLOCKS]))
        world.start()
        api_server_lags(world, Random(1))
        during = world.plan.lagging
        await asyncio.sleep(10.1)
        return [during, world.plan.lagging]

    during, after = on_virtual_time(main())

    assert during in {"watcher-1", "watcher-2"}
    assert not after


def test_nothing_strikes_once_the_plan_has_ceased():
    plan = RandomFaults("1", factor=4.0)
    plan.cease()

    assert set(fates(plan, POST)) == {Answered.SERVED}


@pytest.mark.parametrize("kind", [kind for kind, _ in INCIDENTS])
def test_each_kind_of_incident_has_a_name_for_people(kind: Kind):
    assert kind.value


def test_a_crash_point_ends_exactly_one_process():
    result = run_crash("create", 30)

    assert sum("CRASH" in line for line in result.history.lines) == 1
    assert result.is_good


def test_leases_and_events_are_no_crash_points():
    plan = CrashPoint()

    async def main() -> int:
        ApiServer(network(), History()).transport(Port("watcher-1"))
        plan.after_write("watcher-1", Request(method="PUT", target="/apis/coordination.k8s.io/v1/namespaces/default/leases/x"))
        plan.after_write("watcher-1", Request(method="POST", target="/api/v1/namespaces/default/events"))
        return plan.points

    assert on_virtual_time(main()) == 0
