"""Rolling updates: the revisions of a parent, which child follows which, and the next step."""
