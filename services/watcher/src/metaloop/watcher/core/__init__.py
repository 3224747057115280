"""The watcher's decisions: no I/O, no clock, no await, no logging.

Rules, held by import-linter:

1. Nothing here reads a clock: what depends on time is given `now`, and says when it wants to be asked again.
2. Nothing here talks to anybody: it returns what should be done, as values.
3. What must always be true of a field is written on that field.
"""
