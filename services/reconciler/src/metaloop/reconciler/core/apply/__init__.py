"""Applying what is desired to what is there, as functions of JSON: three-way merge, list maps, schemas, server-side apply.

Nothing here knows of parents, hooks or controllers, so the package can be lifted into another project. Rules
    1. Values are JSON as the API server has it. Inputs are never changed; a result may share parts with them.
    2. What means the same as what is observed *is* the observed value, the identical object: nothing is to be written then.
    3. What depends on a kind comes from its schema. Where no schema is known, a guess stands in for it.
"""
