"""The kinds of controllers, one module each, and the registry that names them."""
