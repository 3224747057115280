"""How the watcher serves each kind of controller. To add a kind: a module here, and a line in `registry.py`."""
