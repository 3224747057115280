"""What `metaloop explain` says of a parent, and how it reaches the watchers."""

import json
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from metaloop.common.json import JsonObject
from metaloop.devkit.cli.debug_views import TOKEN_HEADER, DebugOptions, DebugViews, debug_views
from metaloop.devkit.cli.explain import ParentName, explained
from metaloop.devkit.errors import DevkitError

ASKED = ParentName(kind="Hello", namespace="default", name="a")
WAITING: JsonObject = {
    "stage": "waiting",
    "class": "changed",
    "reason": "child ConfigMap default/a changed",
    "ageSeconds": 3.0,
    "againBecause": None,
    "failures": 0,
    "dueInSeconds": {},
}
LAST: JsonObject = {
    "because": "parent changed",
    "class": "changed",
    "endedSecondsAgo": 7.0,
    "waitedSeconds": 0.1,
    "tookSeconds": 0.4,
    "result": "done",
    "reason": "",
    "message": "",
    "hookSeconds": {"sync": 0.25},
    "actions": {"CreateChild": 2},
    "traceId": "4bf92f35",
}


def unit(*, queue: JsonObject | None = None, last: JsonObject | None = None, awaits: tuple[str, ...] = (), part: str = "") -> JsonObject:
    """One unit of the parent's work."""
    return {"part": part, "queue": queue, "awaits": [*awaits], "last": last}


def answer(*units: JsonObject, **changes: object) -> JsonObject:
    """What a watcher says of a parent that is served, at rest unless units say otherwise."""
    known: JsonObject = {
        "controller": "CompositeController/hello",
        "parent": "default/a",
        "exists": True,
        "selected": True,
        "parentIsPaused": False,
        "controllerIsPaused": False,
        "watchProblem": "",
        "resyncSeconds": None,
        "units": [*(units or (unit(),))],
    }
    return known | changes  # type: ignore[operator]


def said(*known: JsonObject, controllers: tuple[JsonObject, ...] = ()) -> str:
    """The lines as one text."""
    return "\n".join(explained(ASKED, known, controllers=controllers))


@pytest.mark.parametrize(
    ("known", "line"),
    [
        (answer(), "It is at rest: nothing marked it, and nothing is due."),
        (answer(exists=False, selected=False), "The watcher sees no such object"),
        (answer(selected=False), "It is not selected: its labels or annotations don't match"),
        (answer(parentIsPaused=True), "It is paused by metaloop.dev/paused"),
        (answer(controllerIsPaused=True), "The controller is paused by metaloop.dev/paused"),
        (answer(watchProblem="forbidden"), "Its kind can't be watched now: forbidden"),
        (answer(resyncSeconds=30.0), "The controller has it resynced every 30 s."),
        (answer(), "The controller has no resync period."),
        (answer(unit(queue=WAITING)), "It waits for its turn, because: child ConfigMap default/a changed (changed, 3.0 s ago)."),
        (answer(unit(queue={**WAITING, "stage": "parked"})), "It waits until a watch that broke has caught up"),
        (
            answer(unit(queue={**WAITING, "stage": "leased", "againBecause": "it changed"})),
            "Afterwards it is synced once more, because: it changed",
        ),
        (answer(unit(queue={**WAITING, "failures": 4})), "It failed 4 times in a row."),
        (answer(unit(queue={**WAITING, "dueInSeconds": {"retry": 12.5}})), "In 12.5 s it is tried again, unless something happens before."),
        (answer(unit(awaits=("configmaps default/a",))), "It waits until these writes of its last sync are seen: configmaps default/a"),
        (answer(unit(last=LAST)), "Last sync: done, 7.0 s ago, because: parent changed (changed); it waited 0.1 s and took 0.4 s."),
        (answer(unit(last=LAST)), "Hooks: sync 0.25 s"),
        (answer(unit(last=LAST)), "Written: 2 CreateChild"),
        (answer(unit(last={**LAST, "actions": {}})), "Written: nothing"),
        (answer(unit(last=LAST)), "Trace: 4bf92f35"),
        (answer(unit(last={**LAST, "result": "retry", "reason": "TimedOut", "message": "it hangs"})), "It ended with TimedOut: it hangs"),
        (answer(unit(part="uid-1")), "Part uid-1:"),
    ],
)
def test_state_of_a_parent_has_a_line_of_its_own(known: JsonObject, line: str):
    assert line in said(known)


def test_parent_that_is_not_served_is_not_said_to_be_resynced():
    assert "resync" not in said(answer(selected=False, resyncSeconds=30.0))


def test_kind_of_no_controller_is_said_with_the_controllers_that_are_not_ready():
    waiting: JsonObject = {
        "controller": "CompositeController x",
        "ready": False,
        "reason": "WaitingForCRD",
        "message": "hellos is not served",
    }
    ready: JsonObject = {"controller": "CompositeController y", "ready": True, "reason": "", "message": ""}

    lines = said(controllers=(waiting, ready)).splitlines()

    assert lines == [
        "Hello default/a: no running controller has parents of this kind.",
        "  CompositeController x is not ready: WaitingForCRD: hellos is not served",
    ]


def test_parent_of_two_controllers_is_explained_for_each():
    lines = said(answer(), answer(controller="DecoratorController/other")).splitlines()

    assert [line for line in lines if not line.startswith(" ")] == [
        "Hello default/a, of CompositeController/hello",
        "Hello default/a, of DecoratorController/other",
    ]


# -- reaching the watchers ---------------------------------------------------------------------------------------------

Handler = Callable[[httpx.Request], httpx.Response]


class Answering(httpx.AsyncBaseTransport):
    """Answers requests without a network."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self._handler(request)


async def shown_by(handler: Handler, *roots: str) -> list[JsonObject]:
    """What the watchers behind `handler` show of their queues."""
    async with httpx.AsyncClient(transport=Answering(handler)) as client:
        return await DebugViews(client=client, roots=roots).read("queue", kind="Hello")


async def test_answers_of_all_watchers_are_put_together():
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=json.dumps([{"host": request.url.host, "kind": request.url.params["kind"]}]))

    found = await shown_by(handler, "http://one", "http://two")

    assert found == [{"host": "one", "kind": "Hello"}, {"host": "two", "kind": "Hello"}]


async def test_refusal_of_a_watcher_is_told_with_its_text():
    with pytest.raises(DevkitError, match="answered 401: the header X-Metaloop-Debug-Token is missing or wrong"):
        await shown_by(lambda _: httpx.Response(401, text="the header X-Metaloop-Debug-Token is missing or wrong"), "http://one")


async def test_watcher_that_does_not_answer_is_named():
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(DevkitError, match="http://one does not answer: refused"):
        await shown_by(handler, "http://one")


@pytest.fixture
async def local_views() -> AsyncIterator[DebugViews]:
    async with debug_views(DebugOptions(url="http://127.0.0.1:8091/debug/", token="secret")) as views:
        yield views


def test_views_at_a_url_are_asked_with_the_token(local_views: DebugViews):
    assert local_views.roots == ["http://127.0.0.1:8091"]
    assert local_views.client.headers[TOKEN_HEADER] == "secret"


def test_token_is_not_shown_with_the_options():
    assert "secret" not in repr(DebugOptions(token="secret"))
