"""Deploys the objects of a component: in order, by policies, and with an inventory of what was deployed.

Rules
    1. An object is in the persisted inventory before it is created, so that nothing is ever left behind unknown.
    2. Nothing is touched as long as any object or any setting of it is invalid.
    3. An object that is not labelled as the component's is neither updated nor deleted.
    4. Nothing here waits. What is not ready yet is looked at again in the next pass.

`waves` decides about one wave, `removal` about what has to go. `kinds/component.py` makes a pass of them.
"""
