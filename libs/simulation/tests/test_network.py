"""What lies between the parts of a run: ports, delays, the history, and machines with clocks of their own."""

import asyncio

import pytest
from virtual import network, now, on_virtual_time

from metaloop.common.machine import monotonic, randomness, running_on, wall_time
from metaloop.simulation.history import History
from metaloop.simulation.loop import START_SECONDS
from metaloop.simulation.machines import EPOCH_SECONDS, SimulatedMachine
from metaloop.simulation.network import API, BUS, GATEWAY, Port

PEERS = (API, BUS, GATEWAY)


def reached(port: Port) -> set[str]:
    return {peer for peer in PEERS if port.reaches(peer)}


def test_a_port_reaches_all_but_what_it_is_cut_off_from():
    port = Port("watcher-1")
    before = reached(port)

    port.cut(BUS)
    port.cut(GATEWAY)
    port.join(GATEWAY)

    assert before == {*PEERS}
    assert reached(port) == {API, GATEWAY}


def test_a_port_of_a_process_that_is_gone_reaches_nobody_for_ever():
    port = Port("watcher-1")

    port.die()
    port.join(API)

    assert reached(port) == set()


def test_listeners_are_told_of_each_change_and_see_it():
    port, seen = Port("watcher-1"), list[tuple[bool, bool]]()
    port.on_change.append(lambda: seen.append((port.is_alive, port.reaches(API))))

    port.cut(API)
    port.join(API)
    port.die()

    assert seen == [(True, False), (True, True), (False, False)]


def test_a_listener_may_leave_while_it_is_told():
    port, told = Port("watcher-1"), list[str]()

    def once() -> None:
        told.append("once")
        port.on_change.remove(once)

    port.on_change += [once, lambda: told.append("always")]
    port.cut(API)
    port.cut(BUS)

    assert told == ["once", "always", "always"]


def test_trips_are_within_their_bounds_and_the_same_for_one_seed():
    one, other = network(), network()

    trips = [one.trip() for _ in range(200)]

    assert all(one.shortest_seconds <= trip <= one.longest_seconds for trip in trips)
    assert len(set(trips)) > 100
    assert trips == [other.trip() for _ in range(200)]


def test_the_network_calls_at_the_time_that_was_asked_for():
    async def main() -> list[tuple[str, float]]:
        calls = list[tuple[str, float]]()
        between = network()
        between.later(3, lambda: calls.append(("later", now() - START_SECONDS)))
        between.at(START_SECONDS + 1, lambda: calls.append(("at", now() - START_SECONDS)))
        between.later(2, lambda: calls.append(("never", 0.0))).cancel()
        await asyncio.sleep(5)
        return calls

    assert on_virtual_time(main()) == [("at", 1.0), ("later", 3.0)]


@pytest.mark.parametrize(
    ("read", "problem"),
    [(monotonic, "clock"), (wall_time, "clock"), (lambda: randomness().random(), "random")],
    ids=["clock", "date", "random"],
)
def test_the_network_runs_on_no_machine(read: object, problem: str):
    """What it calls belongs to no process, even if a process asked for the call."""

    async def main() -> BaseException:
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.set_result(context["exception"]))
        with running_on(SimulatedMachine("one", seed="1")):
            network().later(1, read)  # type: ignore[arg-type]
        return await failed

    problem_found = on_virtual_time(main())

    assert isinstance(problem_found, RuntimeError)
    assert problem in str(problem_found)


def test_wall_clocks_begin_in_2026_and_are_set_one_by_one():
    async def main() -> tuple[float, float]:
        one, other = SimulatedMachine("one", seed="1"), SimulatedMachine("other", seed="1")
        one.set_ahead(-3600)
        return one.wall_time() - EPOCH_SECONDS, other.wall_time() - EPOCH_SECONDS

    behind, right = on_virtual_time(main())

    assert behind == pytest.approx(START_SECONDS - 3600, abs=0.01)
    assert right == pytest.approx(START_SECONDS, abs=0.01)


def test_no_two_readings_of_a_wall_clock_are_equal():
    async def main() -> list[float]:
        machine = SimulatedMachine("one", seed="1")
        return [machine.wall_time() for _ in range(100)]

    readings = on_virtual_time(main())

    assert readings == sorted(set(readings))


def test_only_the_monotonic_clock_does_not_count_sleep():
    async def main() -> tuple[float, float]:
        machine = SimulatedMachine("one", seed="1")
        await asyncio.sleep(60)
        machine.slept(45)
        return machine.monotonic() - START_SECONDS, machine.boot_time() - START_SECONDS

    assert on_virtual_time(main()) == (15.0, 60.0)


def test_machines_draw_by_seed_and_name():
    draws = {(seed, name): SimulatedMachine(name, seed=seed).random.random() for seed in "12" for name in ("one", "other")}

    assert len({*draws.values()}) == len(draws)
    assert SimulatedMachine("one", seed="1").random.random() == draws["1", "one"]


def history_of(*notes: tuple[float, str]) -> History:
    """A history with lines at these seconds."""

    async def main() -> History:
        history = History()
        for at, text in notes:
            await asyncio.sleep(START_SECONDS + at - now())
            history.note("somebody", text)
        return history

    return on_virtual_time(main())


def test_histories_are_equal_if_all_their_lines_are():
    one, same = history_of((1, "a"), (2, "b")), history_of((1, "a"), (2, "b"))
    others = [history_of((1, "a")), history_of((1, "a"), (2, "c")), history_of((1, "a"), (3, "b")), history_of()]

    assert one.digest == same.digest
    assert one.digest not in {other.digest for other in others}


def test_a_violation_is_counted_and_stands_among_the_lines():
    async def main() -> History:
        history = History()
        history.note("watcher-1", "started")
        history.violation("two workers hold one key")
        return history

    history = on_virtual_time(main())

    assert history.violations == ["two workers hold one key"]
    assert history.tail(1).endswith("two workers hold one key")
    assert len(history.tail(5).splitlines()) == 2
