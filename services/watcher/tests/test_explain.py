"""What is said of a parent: whether anything is done to it, why it was synced last, and what it waits for."""

from dataclasses import replace

import httpx
import pytest

from metaloop.common.faults import Fault
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.report import SyncReport, Write
from metaloop.watcher.controller_numbers import ControllerNumbers
from metaloop.watcher.core.entry import Lease
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.explain import Explainer, ParentName
from metaloop.watcher.views import TOKEN_HEADER, Views

from .objects import CONFIGMAPS, HELLOS, record
from .objects import instance as instance_of_hellos
from .routing_in_hand import RoutingInHand

ASKED = ParentName(kind="Hello", namespace="n", name="p")


class Explained:
    """A watcher with one controller, and what it says of its parent `n/p`."""

    def __init__(self) -> None:
        self.routing = RoutingInHand(HELLOS, CONFIGMAPS, limits=Limits(remembered_syncs=10))
        self.instance = instance_of_hellos()
        self.key = JobKey(self.instance.controller.id, HELLOS.id, "n", "p")
        self.explainer = Explainer(running=self.routing.running, caches=self.routing.caches, queue=self.routing.queue)

    def see_parent(self, **changes: object) -> None:
        self.routing.see(HELLOS, record("p", **changes))  # type: ignore[arg-type]

    def start(self) -> None:
        self.routing.start(self.instance)
        self.routing.queue.unblock(self.instance.controller.id)  # as once no other watcher serves it

    def lease(self) -> Lease:
        reply = self.routing.queue.claim(self.key, worker="worker", slots=1)
        assert isinstance(reply, Lease)
        return reply

    def finish(self, lease: Lease, **details: object) -> None:
        report = SyncReport(key=self.key, lease=lease.id, result="done")
        self.routing.queue.report(replace(report, **details))  # type: ignore[arg-type]
        self.routing.queue.receipt(lease.id)

    @property
    def answer(self) -> JsonObject:
        [answer] = self.explainer.explain(ASKED)
        assert is_object(answer)
        return answer

    @property
    def unit(self) -> JsonObject:
        units = self.answer["units"]
        assert is_array(units)
        [unit] = units
        assert is_object(unit)
        return unit


@pytest.fixture
def explained() -> Explained:
    found = Explained()
    found.see_parent()
    found.start()
    return found


@pytest.mark.parametrize("kind", ["Hello", "hello", "hellos"])
def test_parent_is_found_by_its_kind_and_by_its_resource(explained: Explained, kind: str):
    assert len(explained.explainer.explain(replace(ASKED, kind=kind))) == 1


def test_kind_of_no_controller_is_unknown(explained: Explained):
    assert explained.explainer.explain(replace(ASKED, kind="Pod")) == []


def test_parent_that_does_not_exist_is_told_from_one_that_is_not_selected(explained: Explained):
    [missing] = explained.explainer.explain(replace(ASKED, name="other"))

    assert is_object(missing)
    assert (missing["exists"], missing["selected"]) == (False, False)
    assert (explained.answer["exists"], explained.answer["selected"]) == (True, True)


def test_paused_parent_is_named_so(explained: Explained):
    before = explained.answer["parentIsPaused"]

    explained.see_parent(version=2, annotations={"metaloop.dev/paused": "true"})

    assert (before, explained.answer["parentIsPaused"]) == (False, True)


def test_waiting_parent_says_why_it_was_queued(explained: Explained):
    queue = explained.unit["queue"]

    assert is_object(queue)
    assert (queue["stage"], queue["reason"]) == ("waiting", "start")
    assert explained.unit["last"] is None


def test_last_sync_says_how_it_ended_and_what_it_did(explained: Explained):
    explained.routing.clock.advance(2.0)
    lease = explained.lease()
    explained.routing.clock.advance(1.0)
    explained.finish(lease, hook_seconds={"sync": 0.25}, actions={"CreateChild": 2}, trace_id="abc")
    explained.routing.clock.advance(5.0)

    assert explained.unit["last"] == {
        "because": "start",
        "class": "retry",
        "endedSecondsAgo": 5.0,
        "waitedSeconds": 2.0,
        "tookSeconds": 1.0,
        "result": "done",
        "reason": "",
        "message": "",
        "hookSeconds": {"sync": 0.25},
        "actions": {"CreateChild": 2},
        "traceId": "abc",
    }


def test_failed_parent_says_why_and_when_it_is_tried_again(explained: Explained):
    explained.finish(explained.lease(), result="retry", fault=Fault.TIMED_OUT, message="it hangs")

    last, queue = explained.unit["last"], explained.unit["queue"]
    assert is_object(last)
    assert is_object(queue)
    assert (last["result"], last["reason"], last["message"]) == ("retry", Fault.TIMED_OUT.reason, "it hangs")
    assert (queue["failures"], queue["dueInSeconds"]) == (1, {"retry": 0.005})


def test_parent_at_the_gate_names_the_writes_that_are_awaited(explained: Explained):
    write = Write(resource=CONFIGMAPS.id, namespace="n", name="c", uid="u", resource_version="99")

    explained.finish(explained.lease(), writes=(write,))

    assert explained.unit["awaits"] == ["configmaps n/c"]


def test_nothing_is_remembered_while_the_views_are_off():
    routing = RoutingInHand(HELLOS, CONFIGMAPS)
    explained = Explained()
    explained.routing = routing
    explained.explainer = Explainer(running=routing.running, caches=routing.caches, queue=routing.queue)
    explained.see_parent()
    explained.start()

    explained.finish(explained.lease())

    assert explained.unit["last"] is None


# -- as the views serve it ---------------------------------------------------------------------------------------------


def client_of(explained: Explained, *, token: str) -> httpx.AsyncClient:
    routing = explained.routing
    views = Views(
        queue=routing.queue,
        caches=routing.caches,
        subscriptions=routing.subscriptions,
        health=list,
        numbers=ControllerNumbers(router=routing.router, queue=routing.queue),
        explainer=explained.explainer,
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(views.app(token=token)), base_url="http://watcher")


async def test_view_answers_for_the_parent_in_the_query(explained: Explained):
    async with client_of(explained, token="") as client:
        answer = await client.get("/debug/explain", params={"kind": "Hello", "namespace": "n", "name": "p"})

    assert [each["parent"] for each in answer.json()] == [str(explained.key)]


@pytest.mark.parametrize("path", ["/debug/queue", "/debug/controllers", "/debug/explain"])
@pytest.mark.parametrize(("sent", "status"), [(None, 401), ("wrong", 401), ("right", 200)])
async def test_views_are_shown_to_those_who_know_the_token(explained: Explained, path: str, sent: str | None, status: int):
    headers = {TOKEN_HEADER: sent} if sent is not None else {}

    async with client_of(explained, token="right") as client:
        answer = await client.get(path, headers=headers)

    assert answer.status_code == status
