"""What goes wrong in a run, and when: nothing, one crash at a chosen point, or everything now and then."""

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

from metaloop.common.kube.transport import Request
from metaloop.simulation.network import API, BUS, DELIVERED, GATEWAY, NORMAL, Answered, MessageFate, RequestFate
from metaloop.simulation.resources import CONFIG_MAPS
from metaloop.simulation.webhooks import CallEnd, CallFate

if TYPE_CHECKING:
    from metaloop.simulation.world import World

WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})

_LAG_SECONDS: Final = 4.0
"""Longer than a parent waits for the watcher's cache to see our own writes."""
_SILENCE_SECONDS: Final = 90.0
"""Longer than the silence after which a watch is opened again."""


class FaultPlan:
    """Nothing goes wrong. Other plans begin from this one."""

    points = 0
    """How many writes and messages there were so far that could be a crash point."""

    lagging: str = ""
    """The process whose API server shows everything late; empty for none."""

    settling_seconds = 10.0
    """How long after everything is as desired nothing may happen any more."""

    def attach(self, world: "World") -> None:
        """The world that begins to run."""

    def cease(self) -> None:
        """Let nothing go wrong from now on, and everything work again."""

    def pause_seconds(self) -> float:
        """How long users wait between two changes, beside for the effect of the first."""
        return 0.0

    def of_request(self, process: str, request: Request) -> RequestFate:
        """What becomes of a request."""
        del process, request
        return NORMAL

    def after_write(self, process: str, request: Request) -> None:
        """A write was executed, and its answer is not under way yet."""

    def of_message(self, sender: str, subject: tuple[str, ...]) -> MessageFate:
        """What becomes of a message on the bus."""
        del sender, subject
        return DELIVERED

    def of_watch_event(self, process: str) -> float:
        """How many seconds late an event of a watch is."""
        del process
        return 0.0

    def of_call(self, path: str) -> CallFate:
        """What becomes of a call to a webhook."""
        del path
        return CallFate()


class CrashPoint(FaultPlan):
    """One process crashes: the sender of the write or message with this number, once it is executed or under way.

    Without a number nothing crashes, and `points` says how many numbers there are.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = number
        self._world: World | None = None

    def attach(self, world: "World") -> None:
        """The world that begins to run."""
        self._world = world

    def cease(self) -> None:
        """Crash nothing any more."""
        self._world = None

    def after_write(self, process: str, request: Request) -> None:
        """A write was executed: its sender may crash before the answer."""
        if "/leases/" not in request.target and "/events" not in request.target:
            self._pass(process)

    def of_message(self, sender: str, subject: tuple[str, ...]) -> MessageFate:
        """Deliver the message; its sender may crash."""
        if " " not in sender and subject[0] not in {"check", "pull", "keep alive"}:
            self._pass(sender)
        return DELIVERED

    def _pass(self, process: str) -> None:
        if self._world is None:
            return
        if self.points == self._number:
            # A process that does something can't be ended in the middle of it: it ends before it does anything else.
            self._world.network.later(0.0, self._world.processes[process].crash)
        self.points += 1


class Kind(Enum):
    """A kind of faults."""

    REQUESTS = "requests"
    MESSAGES = "messages"
    WATCH_EVENTS = "late watch events"
    LAGS = "an API server that lags"
    SLOW_CALLS = "slow webhooks"
    FAILED_CALLS = "failing webhooks"
    CRASHES = "crashes"
    STALLS = "stalls"
    PARTITIONS = "partitions"
    BROKER = "broker"
    WATCHES = "watches"
    SILENCE = "silent watches"
    RESOURCES = "resources that fail"
    CLOCKS = "clocks"
    BURSTS = "bursts"


_REQUESTS_FAIL: Final = 0.02
_MESSAGES_FAIL: Final = 0.02
_WATCH_EVENTS_LATE: Final = 0.03
_CALLS_FAIL: Final = 0.08
_INCIDENTS_PER_SECOND: Final = 0.15


class RandomFaults(FaultPlan):
    """Things go wrong now and then, as a seed decides, until `cease`.

    A seed also decides which faults its run has at all, and how many: a run with few kinds of faults goes further than
    one in which nothing ever works, and finds what that hides.
    """

    def __init__(self, seed: str, *, kinds: Sequence[Kind] = (), factor: float = 0.0) -> None:
        self._random = Random(f"{seed}/faults")  # noqa: S311 - a seed decides everything
        self._kinds = frozenset(kinds or (kind for kind in Kind if self._random.random() < 0.5))
        self._factor = factor or self._random.choice((0.3, 1.0, 2.0, 4.0))
        self._is_over = False
        self._world: World | None = None
        self._task: asyncio.Task[None] | None = None

    def attach(self, world: "World") -> None:
        """Have incidents happen to this world."""
        self._world = world
        world.history.note("story", f"faults x {self._factor:g}: {', '.join(sorted(kind.value for kind in self._kinds))}")
        self._task = asyncio.get_running_loop().create_task(self._incidents(world), name="incidents")

    def cease(self) -> None:
        """Mend everything."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
        if self._world is not None:
            _mend(self._world)

    def pause_seconds(self) -> float:
        """Some time, in which something else may go wrong."""
        return min(self._random.expovariate(0.2), 20.0)

    def of_request(self, process: str, request: Request) -> RequestFate:
        """What becomes of a request: most are served."""
        if not self._strikes(Kind.REQUESTS, _REQUESTS_FAIL):
            return NORMAL
        fate = self._fate(is_write=request.method in WRITES)
        self._note(f"{request} of {process}: {fate.answered.value} {fate.code or ''} {fate.delay_seconds:.1f} s late")
        return fate

    def of_message(self, sender: str, subject: tuple[str, ...]) -> MessageFate:
        """What becomes of a message: most arrive. Only jobs may arrive twice."""
        if not self._strikes(Kind.MESSAGES, _MESSAGES_FAIL):
            return DELIVERED
        ends = {"LOST": (), "LATE": (self._random.uniform(0.01, 4.0),), "DOUBLED": (0.0, self._random.uniform(0.0, 2.0))}
        end = self._random.choice([*ends] if subject[0] == "job" else ["LOST", "LATE"])
        self._note(f"message {' '.join(subject)} of {sender} is {end}")
        return MessageFate(delays=ends[end])

    def of_watch_event(self, process: str) -> float:
        """How late an event is: most are in time."""
        late = self._random.choice((0.05, 0.5, 3.0)) if self._strikes(Kind.WATCH_EVENTS, _WATCH_EVENTS_LATE) else 0.0
        return max(late, _LAG_SECONDS) if process == self.lagging else late

    def of_call(self, path: str) -> CallFate:
        """What becomes of a call: most are answered soon."""
        del path
        seconds = self._random.uniform(0.002, 0.05)
        if self._strikes(Kind.SLOW_CALLS, _CALLS_FAIL):
            return CallFate(seconds=self._random.uniform(0.5, 9.5))
        if self._strikes(Kind.FAILED_CALLS, _CALLS_FAIL):
            return CallFate(end=self._random.choice([*CallEnd]), seconds=seconds)
        return CallFate(seconds=seconds)

    def _fate(self, *, is_write: bool) -> RequestFate:
        fates = [
            RequestFate(answered=Answered.REFUSED, code=self._random.choice((429, 500, 503, 504))),
            RequestFate(answered=Answered.UNSENT),
            RequestFate(delay_seconds=self._random.uniform(0.1, 8.0)),
        ]
        if is_write:
            fates += [
                RequestFate(answered=Answered.REFUSED, code=409),
                RequestFate(answered=Answered.FAILED, code=self._random.choice((500, 504))),
                RequestFate(answered=Answered.LOST),
            ]
        return self._random.choice(fates)

    def _note(self, what: str) -> None:
        if self._world is not None:
            self._world.history.note("network", what)

    def _strikes(self, kind: Kind, rate: float) -> bool:
        return not self._is_over and kind in self._kinds and self._random.random() < rate * self._factor

    async def _incidents(self, world: "World") -> None:
        incidents = [incident for kind, incident in INCIDENTS if kind in self._kinds]
        while incidents:
            await asyncio.sleep(self._random.expovariate(_INCIDENTS_PER_SECOND * self._factor))
            self._random.choice(incidents)(world, self._random)


# -- incidents ---------------------------------------------------------------------------------------------------------


def crash(world: "World", random: Random) -> None:
    """A process ends, between any two of its awaits."""
    random.choice([*world.processes.values()]).crash_after(random.randrange(1, 200))


def stall(world: "World", random: Random) -> None:
    """A process is stopped for a while, between any two of its awaits."""
    random.choice([*world.processes.values()]).stall_after(random.randrange(1, 200), random.choice((0.3, 1.5, 6.0, 12.0)))


def partition(world: "World", random: Random) -> None:
    """Nothing passes between a process and one of its peers for a while."""
    process = random.choice([*world.watchers, *world.reconcilers])
    peer = random.choice((API, BUS) if process in world.watchers else (API, BUS, GATEWAY))
    seconds = random.choice((0.5, 3.0, 12.0))
    world.history.note(process.name, f"CUT OFF from {peer} for {seconds:g} s")
    port = process.port
    port.cut(peer)
    world.network.later(seconds, port.join, peer)


def broker_restart(world: "World", random: Random) -> None:
    """The broker is away for a while, and may have lost its store."""
    is_wiped, seconds = random.random() < 0.5, random.choice((0.5, 3.0, 8.0))
    world.history.note("broker", f"AWAY for {seconds:g} s{', and loses its store' if is_wiped else ''}")
    world.broker.stop()
    if is_wiped:
        world.broker.stream.wipe()
    world.network.later(seconds, world.broker.start)


def watches_end(world: "World", random: Random) -> None:
    """The API server ends all watches; it may have forgotten the changes from which they would resume."""
    is_compacted = random.random() < 0.5
    world.history.note("api server", f"ends all watches{', and forgets all changes' if is_compacted else ''}")
    if is_compacted:
        world.api.store.compact()
    world.api.end_watches()


def watches_go_silent(world: "World", random: Random) -> None:
    """The connections of a process' watches die, and nobody notices before they were silent for too long."""
    process = random.choice(world.watchers)
    world.history.note(process.name, "its watches go SILENT")
    world.api.silence_watches(process.port)
    world.plan.settling_seconds = _SILENCE_SECONDS


def api_server_lags(world: "World", random: Random) -> None:
    """A process watches another API server for a while, which hears of all changes seconds later."""
    process, seconds = random.choice(world.watchers), random.choice((2.0, 10.0))
    world.history.note(process.name, f"its API server LAGS for {seconds:g} s")
    world.plan.lagging = process.name
    world.network.later(seconds, _stop_lagging, world.plan)


def _stop_lagging(plan: FaultPlan) -> None:
    plan.lagging = ""


def resource_fails(world: "World", random: Random) -> None:
    """The API server fails all requests for one resource for a while."""
    info = random.choice([collection.info for collection in world.api.store.collections.values()])
    code, seconds = random.choice((500, 503)), random.choice((2.0, 10.0))
    world.history.note("api server", f"answers {code} for {info.resource} for {seconds:g} s")
    world.api.break_resource(info.id, code)
    world.network.later(seconds, world.api.mend_resource, info.id)


def clock_jumps(world: "World", random: Random) -> None:
    """Somebody sets the wall clock of a process."""
    process, seconds = random.choice([*world.processes.values()]), random.uniform(-3600.0, 3600.0)
    world.history.note(process.name, f"CLOCK is {seconds:+.0f} s ahead")
    process.machine.set_ahead(seconds)


def burst(world: "World", random: Random) -> None:
    """Users write a hundred objects at once, while a watcher may be stopped for longer than a watch may be silent."""
    process = random.choice(world.watchers)
    count, label = random.choice((70, 130)), f"burst-{random.randrange(1_000_000)}"
    process.stall_after(random.randrange(1, 12), random.choice((0.5, 75.0)))
    for number in range(count):
        world.create(CONFIG_MAPS, {"metadata": {"name": f"{label}-{number}"}})


Incident: TypeAlias = "Callable[[World, Random], None]"
INCIDENTS: Final[Sequence[tuple[Kind, Incident]]] = (
    (Kind.CRASHES, crash),
    (Kind.STALLS, stall),
    (Kind.PARTITIONS, partition),
    (Kind.BROKER, broker_restart),
    (Kind.WATCHES, watches_end),
    (Kind.SILENCE, watches_go_silent),
    (Kind.LAGS, api_server_lags),
    (Kind.RESOURCES, resource_fails),
    (Kind.CLOCKS, clock_jumps),
    (Kind.BURSTS, burst),
)


def _mend(world: "World") -> None:
    for process in world.processes.values():
        for peer in (API, BUS, GATEWAY):
            process.port.join(peer)
        process.resume()
    world.broker.start()
    _stop_lagging(world.plan)
    for info in tuple(world.api.broken):
        world.api.mend_resource(info)
