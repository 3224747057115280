"""What can go wrong in the watcher, drawn as a tree; the leaves of `metaloop.common.errors` are raised as they are.

MetaloopError
└── Terminal
    └── MalformedObject      the API server's word for an object that is none: it is skipped, and nobody else suffers
"""

from metaloop.common.errors import Terminal


class MalformedObject(Terminal):
    """Something in a list or watch is no object: it has no name, no UID, or can't be written down."""
