"""Deterministic simulation: the services' own code, on virtual time, over models of everything that they talk to.

A seed decides all that is left to chance: delays, faults, random numbers. So a run that fails can be repeated exactly.

loop       an event loop whose time advances to the next timer when nothing is ready
machines   the clocks and random numbers of each simulated process
cluster    the API server and its garbage collector
bus        the two links of the bus
webhooks   what answers the hooks' calls
processes  watchers, reconcilers and gateways, which start, crash, stall and restart
faults     what goes wrong in a run, and when
invariants what holds at all times
stories    what users do in a run, and what is true in the end
"""
