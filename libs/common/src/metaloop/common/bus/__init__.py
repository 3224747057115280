"""The only place that imports `nats`: connect, jobs, claims, large replies.

connect.py   one connection that comes back by itself; requests with a deadline
stream.py    the job stream and its consumer: made, mended, and how they are configured
jobs.py      the watcher's end of the stream: offer a job, learn whether it is queued
pull.py      the workers' end: pull jobs into free slots, finish them or give them back
claims.py    a worker asks for a lease and an observation, the watcher answers
channels.py  what else the two tell one another: renewals, reports, receipts, held leases
parts.py     replies larger than a message may be
"""
