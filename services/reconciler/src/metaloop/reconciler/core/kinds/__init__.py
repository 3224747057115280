"""The kinds of controllers, one module each, and their registry."""
