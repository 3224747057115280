"""The children of a parent: which are its own, how they differ from what is desired, and what to do about it."""
