from hypothesis import given
from hypothesis import strategies as st

from metaloop.watcher.core.fair_queue import FairQueue, Flow, MarkClass

NEW, CHANGED, ECHO, RETRY, RESYNC = MarkClass


def order_of(order: FairQueue[str], *, now: float = 0.0) -> list[str]:
    """All that may go, in the order in which it goes."""
    return list(iter(lambda: order.pop(now), None))


def filled(flow: Flow[str], **waiting: MarkClass) -> FairQueue[str]:
    order = FairQueue[str]()
    for item, klass in waiting.items():
        order.push(item, flow, klass, now=0.0)
    return order


def test_classes_go_in_the_order_new_changed_retry_resync():
    order = filled(Flow(), resync=RESYNC, retry=RETRY, changed=CHANGED, new=NEW)

    assert order_of(order) == ["new", "changed", "retry", "resync"]


def test_a_new_key_goes_next_however_many_changes_come_after_it():
    flow = Flow[str]()
    order = filled(flow, **{f"changed{number}": CHANGED for number in range(100)})
    order.push("new", flow, NEW, now=0.0)
    order.push("changed since", flow, CHANGED, now=0.0)

    assert order.pop(0.0) == "new"


def test_within_a_class_newest_and_oldest_take_turns():
    order = filled(Flow(), a=CHANGED, b=CHANGED, c=CHANGED, d=CHANGED, e=CHANGED)

    assert order_of(order) == ["e", "a", "d", "b", "c"]


def test_a_fresh_change_overtakes_a_backlog_within_two_turns():
    flow = Flow[str]()
    order = FairQueue[str]()
    for number in range(1000):
        order.push(f"old{number}", flow, CHANGED, now=0.0)
    order.pop(0.0)

    order.push("fresh", flow, CHANGED, now=1.0)

    assert "fresh" in [order.pop(1.0), order.pop(1.0)]


def test_the_oldest_advances_however_many_fresh_changes_come():
    flow = Flow[str]()
    order = filled(flow, oldest=CHANGED)
    went: list[str | None] = []
    for number in range(2):
        order.push(f"fresh{number}", flow, CHANGED, now=1.0)
        order.push(f"fresher{number}", flow, CHANGED, now=1.0)
        went.append(order.pop(1.0))

    assert "oldest" in went


def test_controllers_are_served_round_robin_whatever_their_backlogs():
    busy, quiet = Flow[str](), Flow[str]()
    order = FairQueue[str]()
    for number in range(100):
        order.push(f"busy{number}", busy, CHANGED, now=0.0)
    order.push("quiet0", quiet, RESYNC, now=0.0)
    order.push("quiet1", quiet, RESYNC, now=0.0)

    first_four = [order.pop(0.0) for _ in range(4)]

    assert [item for item in first_four if item and item.startswith("quiet")] == ["quiet1", "quiet0"]


def test_a_resync_that_waited_long_goes_although_changes_never_end():
    flow = Flow[str]()
    order = filled(flow, resync=RESYNC)
    went: list[str | None] = []
    for number in range(4):
        order.push(f"a{number}", flow, CHANGED, now=11.0)
        order.push(f"b{number}", flow, CHANGED, now=11.0)
        went.append(order.pop(11.0))

    assert "resync" in went


def test_aged_keys_get_no_more_than_each_fourth_turn():
    flow = Flow[str]()
    order = FairQueue[str]()
    for number in range(100):
        order.push(f"resync{number}", flow, RESYNC, now=0.0)
        order.push(f"changed{number}", flow, CHANGED, now=100.0)

    went = [str(order.pop(100.0)) for _ in range(40)]

    assert sum(item.startswith("resync") for item in went) == 10


def test_a_controller_at_its_limit_is_skipped_until_one_of_its_jobs_ends():
    limited, free = Flow[str](), Flow[str]()
    order = FairQueue[str]()
    order.limit(limited, 1)
    order.push("limited0", limited, CHANGED, now=0.0)
    order.push("limited1", limited, CHANGED, now=0.0)
    order.push("free", free, CHANGED, now=0.0)

    assert order_of(order) == ["limited1", "free"]

    order.release(limited)

    assert order_of(order) == ["limited0"]


def test_a_raised_limit_lets_waiting_keys_go():
    flow = Flow[str]()
    order = FairQueue[str]()
    order.limit(flow, 0)
    order.push("key", flow, CHANGED, now=0.0)
    assert order.pop(0.0) is None

    order.limit(flow, None)

    assert order.pop(0.0) == "key"


def test_a_discarded_key_does_not_go():
    flow = Flow[str]()
    order = filled(flow, gone=CHANGED, stays=CHANGED)

    order.discard("gone", flow)

    assert len(order) == 1
    assert order_of(order) == ["stays"]


def test_a_change_that_waited_has_its_turn_although_new_keys_never_end():
    flow = Flow[str]()
    order = filled(flow, changed=CHANGED)
    went: list[str | None] = []
    for number in range(4):
        order.push(f"a{number}", flow, NEW, now=2.0)
        order.push(f"b{number}", flow, NEW, now=2.0)
        went.append(order.pop(2.0))

    assert "changed" in went


@given(waiting=st.lists(st.sampled_from(list(MarkClass)), min_size=1, max_size=30), controllers=st.integers(1, 3))
def test_every_key_has_its_turn_however_many_fresh_changes_come(waiting: list[MarkClass], controllers: int):
    flows = [Flow[str]() for _ in range(controllers)]
    order = FairQueue[str]()
    for number, klass in enumerate(waiting):
        order.push(f"first{number}", flows[number % controllers], klass, now=0.0)

    first = {f"first{number}" for number in range(len(waiting))}
    turns = 0
    while first:
        turns += 1
        order.push(f"fresh{turns}", flows[turns % controllers], NEW, now=float(turns))
        first.discard(order.pop(float(turns)) or "")
        assert turns < 10 + controllers * (4 * len(waiting) + 10)
