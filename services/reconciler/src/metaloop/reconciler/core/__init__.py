"""Decides what a sync does. The package is pure: no I/O, no clock, no await, no logging.

Rules
    1. Everything that a decision depends on is an argument: what was observed, what the hook answered, the time. Equal
       arguments give equal decisions.
    2. Inputs are never changed. What is derived from an object may share parts with it, which never change either.
    3. Every write to the cluster is an `Action` before it is a call, and states its reason.
    4. A hook's answer is trusted only after it was read (`hooks.answer`) and validated (`hooks.validation`). Everything
       else relies on these two.
    5. Knowledge that is a table is written as a table: the steps of a sync, update methods, faults.

`pipeline` is the page to read first.
"""
