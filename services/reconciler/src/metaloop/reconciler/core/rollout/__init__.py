"""Rolling updates: the revisions of a parent, which child follows which revision, and the next child to update."""
