"""Routing rules: the ways in which objects concern the units of work of a controller.

A controller's kind serves it by a list of rules. Each rule is a value that answers two questions: which units of work
does a change concern, and what does a claim show of one unit. Caches and indexes are shared between rules and passed to
them.

    Parents    the objects that the controller's spec selects: each is a unit of work
    Owned      the objects that a parent controls
    Orphans    the objects without a controller that a parent's selector matches
    Parts      the inputs that a parent selects, and the outputs made for each: each input is a part of its work
    Related    the objects that a parent's customize hook asked for
"""
