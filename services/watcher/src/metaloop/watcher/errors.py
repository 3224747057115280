"""What can go wrong in the watcher, drawn as a tree; the leaves of `metaloop.common.errors` are raised as they are.

MetaloopError
├── Transient
│   └── NotLeading           another watcher leads this shard, or may lead it by now: we have nothing to say
└── Terminal
    └── MalformedObject      the API server's word for an object that is none: it is skipped, and nobody else suffers
"""

from metaloop.common.errors import Terminal, Transient


class NotLeading(Transient):
    """Another watcher may lead this shard by now."""


class MalformedObject(Terminal):
    """Something in a list or watch is no object: it has no name, no UID, or can't be written down."""
