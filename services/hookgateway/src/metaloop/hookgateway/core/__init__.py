"""The gateway's decisions: no I/O, no clock, no await, no logging.

Rules
    1. Whatever a decision depends on is an argument: the webhook's spec, its answer, the credentials, *now*.
    2. A webhook's answer is hostile until it has been checked. Nothing here grows with what a webhook sends.
    3. No secret appears in a message, a representation or a label. A webhook's text is redacted before it is cut.
    4. Knowledge that is a table is written as a table: statuses, content codings, breaker transitions.
"""
