"""The reconciler's decisions: no I/O, no clock, no await, no logging.

Rules
    1. Whatever a decision depends on is an argument: what was observed, what the hook answered. Equal arguments, equal decision.
    2. Inputs are never changed. What is derived from an object may share parts with it: nobody changes those either.
    3. Every write to the cluster is an `Action` before it is a call, and says for what reason.
    4. What a hook answered is believed only after `answer` and `validate`: from what they let pass, everything else may conclude freely.
    5. Knowledge that is a table is written as a table: update methods, the end of each error.

The words and their order: an `Observed` parent; its candidates `claim`ed; a `request` to the hook and its `answer`; the answer `validate`d into
`Desired`, by a `rollout` where there are several `revision`s of the parent; `changes` between the claimed and the desired, which an apply strategy judges (`dynamic`,
with `merge`, or `ssa`); the `plan`, by `strategy`; the `status`; the `outcome`.
"""
