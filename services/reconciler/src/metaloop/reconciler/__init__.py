"""Brings one parent and its children to the state that its hooks ask for."""
