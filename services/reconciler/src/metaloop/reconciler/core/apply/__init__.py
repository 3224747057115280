"""Applies a desired object to an observed one: three-way merge, list maps, schemas, server-side apply.

The package consists of pure functions of JSON. It knows nothing of parents, hooks or controllers, so it can be lifted
into another project.

Rules
    1. Values are JSON as the API server stores it. Inputs are never changed. A result may share parts with them.
    2. A result that means the same as the observed value *is* the observed value, the identical object. Callers
       then know that there is nothing to write.
    3. What depends on a kind comes from its schema. Where no schema is known, a guessed one is used.
"""
