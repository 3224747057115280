"""The table of bounds: every figure that is judged. Units are defined in `bench.calibration` and `bench.cost`.

Counts are exact. The bound of a ratio is about a fifth above the median of runs on an otherwise idle machine with two
cores, or above the highest of them: it catches a change for the worse. Memory is judged per byte kept.
"""

from bench.figures import AtLeast, AtMost, Exactly, Judged

_CREATES = "creates"
_CREATES_CPU = "creates' CPU"
_TIMES = "x"

# Parents from nothing.
CREATE = Judged(name="1,000 x 3 from nothing: all statuses right", unit=_CREATES, bound=AtMost(limit=22_000))
CREATE_CPU = Judged(name="our CPU, times the API server's", unit=_TIMES, bound=AtMost(limit=1.05))
CREATE_CALLS = Judged(name="hook calls per new parent", bound=Exactly(count=3))
CREATE_WRITES = Judged(name="API writes per new parent with 3 children", bound=Exactly(count=5))
CREATE_READS = Judged(name="API reads per new parent", bound=Exactly(count=0))
WIDE = Judged(name="300 x 10 from nothing: all statuses right", unit=_CREATES, bound=AtMost(limit=11_500))
WIDE_CPU = Judged(name="our CPU, times the API server's", unit=_TIMES, bound=AtMost(limit=0.8))
WIDE_CALLS = Judged(name="hook calls per new parent", bound=Exactly(count=3))
WIDE_WRITES = Judged(name="API writes per new parent with 10 children", bound=Exactly(count=12))
WIDE_READS = Judged(name="API reads per new parent", bound=Exactly(count=0))

# Changes.
UPDATE = Judged(name="1,000 x 3 changed in place", unit=_CREATES, bound=AtMost(limit=20_500))
UPDATE_CPU = Judged(name="our CPU, times the API server's", unit=_TIMES, bound=AtMost(limit=0.8))
UPDATE_WRITES = Judged(name="API writes per changed parent", bound=Exactly(count=4))
UPDATE_READS = Judged(name="API reads per changed parent", bound=Exactly(count=0))
HOOK_P50 = Judged(name="change acknowledged -> hook called, p50", unit="round trips of a change", bound=AtMost(limit=1))
HOOK_P99 = Judged(name="change acknowledged -> hook called, p99", unit="round trips of a change", bound=AtMost(limit=1.5))
CHILDREN_P50 = Judged(name="change acknowledged -> 3 children updated, p50", unit="round trips of a change", bound=AtMost(limit=3.5))
CHILDREN_P99 = Judged(name="change acknowledged -> 3 children updated, p99", unit="round trips of a change", bound=AtMost(limit=4))

# One parent of a MapController with 20,000 inputs. The rate is that of two cores, which the control plane shares.
MAP_RATE = Judged(name="20,000 inputs mapped: outputs a second, times the API server's creates", unit=_TIMES, bound=AtLeast(limit=0.25))
MAP_CPU = Judged(name="our CPU, times the API server's", unit=_TIMES, bound=AtMost(limit=1.6))
MAP_CALLS = Judged(name="hook calls per input", bound=Exactly(count=1))
MAP_WRITES = Judged(name="writes of outputs per input", bound=Exactly(count=1))
MAP_READS = Judged(name="API reads", bound=Exactly(count=0))
MAP_MEMORY = Judged(name="the watcher's memory for an input with its output, beside these, times 3 KB", unit=_TIMES, bound=AtMost(limit=1))
MAP_REST_WRITES = Judged(name="API requests at rest", bound=Exactly(count=0))
MAP_REST_CALLS = Judged(name="hook calls at rest", bound=Exactly(count=0))
MAP_BURST = Judged(name="status writes for 1,000 more inputs at once", bound=AtMost(limit=10))
MAP_HOOK_P50 = Judged(name="input changed -> hook called, p50", unit="round trips of a change", bound=AtMost(limit=1.5))
MAP_HOOK_P99 = Judged(name="input changed -> hook called, p99", unit="round trips of a change", bound=AtMost(limit=2))
MAP_CHANGE_CALLS = Judged(name="hook calls per changed input", bound=Exactly(count=1))
MAP_CHANGE_WRITES = Judged(name="API writes per changed input", bound=Exactly(count=1))
MAP_PARENT_CALLS = Judged(name="hook calls per input of a changed parent", bound=Exactly(count=1))
MAP_MARKS = Judged(name="changed parent: 20,000 inputs marked", unit=_CREATES, bound=AtMost(limit=1_000))
MAP_TURN = Judged(name="longest turn of the event loop meanwhile", unit=_CREATES, bound=AtMost(limit=100))
MAP_SELECT_TURN = Judged(name="longest turn with an edited selector", unit=_CREATES, bound=AtMost(limit=100))
MAP_END_TURN = Judged(name="longest turn when the parent is deleted", unit=_CREATES, bound=AtMost(limit=50))

# Components. "One by one" is what one client needs for the same creates and status changes, each after the other.
COMPONENT = Judged(name="300 objects in 5 waves from nothing: ready, times one by one", unit=_TIMES, bound=AtMost(limit=1.5))
COMPONENT_WRITES = Judged(name="writes of objects per object", bound=Exactly(count=1))
COMPONENT_SYNC_CPU = Judged(name="our CPU per pass over 1,000 objects in sync", unit=_CREATES_CPU, bound=AtMost(limit=70))
COMPONENT_SYNC_READS = Judged(name="reads, all passes together", bound=Exactly(count=0))
COMPONENT_SYNC_WRITES = Judged(name="writes, all passes together", bound=Exactly(count=0))
COMPONENT_CHANGE_WRITES = Judged(name="writes for one changed object of 1,000", bound=Exactly(count=1))
COMPONENT_CHANGE_READS = Judged(name="reads for it", bound=Exactly(count=0))
COMPONENTS_WRITES = Judged(name="200 x 20 at once: writes of objects per object", bound=Exactly(count=1))
COMPONENTS_SHARE = Judged(name="smaller share of two reconcilers in the CPU for them", unit=_TIMES, bound=AtLeast(limit=0.35))
COMPONENT_LARGE_PARENT = Judged(name="3,000 objects: the largest object, times 1 MB", unit=_TIMES, bound=AtMost(limit=0.5))
COMPONENT_LARGE_WRITES = Judged(name="writes of objects per object", bound=Exactly(count=1))

# Nothing to do.
RESYNC_CPU = Judged(name="our CPU per sync with nothing to do", unit=_CREATES_CPU, bound=AtMost(limit=2))
RESYNC_REQUESTS = Judged(name="API requests, all resyncs together", bound=Exactly(count=0))
IDLE_CPU = Judged(name="the watcher's CPU with 100 watched resources, times the API server's", unit=_TIMES, bound=AtMost(limit=0.2))

# Queueing.
SLOW_HOOK = Judged(name="500 x 1 with a hook of 200 ms, times that with a quick one", unit=_TIMES, bound=AtMost(limit=2.5))
SLOW_HOOK_CALLS = Judged(name="hook calls per parent", bound=Exactly(count=3))
BACKLOG = Judged(name="children of a fresh parent, times the wait for all 1,000 before it", unit=_TIMES, bound=AtMost(limit=0.1))
RESYNC_BACKLOG = Judged(name="children of a fresh parent beside 5,000 resyncs, times alone", unit=_TIMES, bound=AtMost(limit=3))
RESYNC_FAIRNESS = Judged(name="resyncs of 4,000 parents done of those due, times those of 1,000", unit=_TIMES, bound=AtMost(limit=1.25))
DISPATCH = Judged(name="event -> job in a worker's hands, p50", unit="NATS round trips", bound=AtMost(limit=2))

# Large parents.
LARGE_PARENT = Judged(name="1 x 10,000 of 2 KB from nothing: status right", unit=_CREATES, bound=AtMost(limit=40_000))
LARGE_PARENT_WRITES = Judged(name="API writes beside one create for each child", bound=Exactly(count=2))
LARGE_PARENT_READS = Judged(name="API reads", bound=Exactly(count=0))
LARGE_PARENT_CALLS = Judged(name="hook calls", bound=Exactly(count=3))
LARGE_PARENT_REPAIR = Judged(name="a child deleted by hand is back", unit=_CREATES, bound=AtMost(limit=2_500))
LARGE_PARENT_BESIDE = Judged(name="p99 of 100 small parents beside its changes, times alone", unit=_TIMES, bound=AtMost(limit=4))
LARGE_PARENTS = Judged(name="two at once: both statuses right", unit=_CREATES, bound=AtMost(limit=80_000))
LARGE_PARENTS_LEASES = Judged(name="leases that ran out", bound=Exactly(count=0))
LARGE_PARENTS_MEMORY = Judged(name="most memory of the reconciler, times 600 MiB", unit=_TIMES, bound=AtMost(limit=1))

# Deletion and restarts.
FINALIZE = Judged(name="500 parents with a finalize hook deleted", unit=_CREATES, bound=AtMost(limit=11_000))
FINALIZE_CALLS = Judged(name="hook calls per deleted parent", bound=Exactly(count=2))
FINALIZE_WRITES = Judged(name="API writes per deleted parent with a child", bound=Exactly(count=3))
RESTART = Judged(name="killed and started with 1,000 x 3: all synced again", unit=_CREATES, bound=AtMost(limit=6_500))
RESTART_WRITES = Judged(name="API writes, all parents together", bound=Exactly(count=0))
RESTART_CALLS = Judged(name="hook calls per parent", bound=Exactly(count=1))
WATCHER_RESTART = Judged(name="20,000 parents: watcher started -> all marked", unit=_CREATES, bound=AtMost(limit=4_000))

# What lives beside the parents, and what is watched.
ORPHANS_CPU = Judged(name="our CPU beside 20,000 ownerless objects, times without", unit=_TIMES, bound=AtMost(limit=1.25))
ORPHANS_TIME = Judged(name="300 x 3 beside 20,000 ownerless objects, times without", unit=_TIMES, bound=AtMost(limit=1.5))
OWNED_CPU = Judged(name="our CPU beside 20,000 owned objects, times without", unit=_TIMES, bound=AtMost(limit=1.25))
OWNED_TIME = Judged(name="300 x 3 beside 20,000 owned objects, times without", unit=_TIMES, bound=AtMost(limit=1.5))
MEMORY = Judged(name="resident memory per cached ConfigMap of 1 KB, times its size", unit=_TIMES, bound=AtMost(limit=2))
CHILD_EVENT_CPU = Judged(name="CPU per child event", unit=_CREATES_CPU, bound=AtMost(limit=0.04))
CHILD_EVENTS = Judged(name="50,000 child events through one watcher", unit=_CREATES, bound=AtMost(limit=3_000))
CHILD_EVENT_MARKS = Judged(name="marks per child event", bound=Exactly(count=1))
LIST = Judged(name="100,000 ConfigMaps of 1 KB listed", unit=_CREATES, bound=AtMost(limit=5_000))
RELATED_EVENT_CPU = Judged(name="CPU to route a related object's event", unit=_CREATES_CPU, bound=AtMost(limit=0.02))
RELATED_EVENT_PARENTS = Judged(name="share of the subscribed parents that the events mark", bound=Exactly(count=1))

# The hook gateway by itself.
GATEWAY_TIME_16 = Judged(name="1,000 calls, 16 in flight", unit=_CREATES, bound=AtMost(limit=550))
GATEWAY_TIME_128 = Judged(name="1,000 calls, 128 in flight", unit=_CREATES, bound=AtMost(limit=650))
GATEWAY_CPU_16 = Judged(name="CPU per call, 16 in flight", unit=_CREATES_CPU, bound=AtMost(limit=0.35))
GATEWAY_CPU_128 = Judged(name="CPU per call, 128 in flight", unit=_CREATES_CPU, bound=AtMost(limit=0.35))
GATEWAY_LATENCY = Judged(name="latency added to a single call, p50", unit=_CREATES, bound=AtMost(limit=1))
GATEWAY_SLOW_ERRORS = Judged(name="errors of 512 slow calls in flight", bound=Exactly(count=0))
GATEWAY_MEMORY = Judged(name="memory per slow call in flight, times its two bodies", unit=_TIMES, bound=AtMost(limit=8))
GATEWAY_HANGING = Judged(name="p99 beside a hanging webhook, times that without", unit=_TIMES, bound=AtMost(limit=1.2))
GATEWAY_SHARE = Judged(name="two processes behind one port: the smaller share of the work", bound=AtLeast(limit=0.25))
