"""The errors of the watcher. Leaves of `metaloop.common.errors` are raised as they are.

MetaloopError
├── Transient
│   └── NotLeading           another watcher leads this shard, or may lead it by now
│       └── NotAlone         another watcher serves this shard, and one of them is without leader election
└── Terminal
    └── MalformedObject      what the API server sent is no object: it is skipped, and nothing else is affected
"""

from metaloop.common.errors import Terminal, Transient


class NotLeading(Transient):
    """Another watcher may lead this shard by now."""


class NotAlone(NotLeading):
    """Another watcher serves this shard, and this one must not: it runs without leader election."""


class MalformedObject(Terminal):
    """Something in a list or watch is no object: it has no name or no UID, or cannot be serialized."""
