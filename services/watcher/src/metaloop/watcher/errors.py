"""The errors of the watcher. Leaves of `metaloop.common.errors` are raised as they are.

MetaloopError
├── Transient
│   └── NotLeading           another watcher leads this shard, or may lead it by now
└── Terminal
    └── MalformedObject      what the API server sent is no object: it is skipped, and nothing else is affected
"""

from metaloop.common.errors import Terminal, Transient


class NotLeading(Transient):
    """Another watcher may lead this shard by now."""


class MalformedObject(Terminal):
    """Something in a list or watch is no object: it has no name or no UID, or cannot be serialized."""
