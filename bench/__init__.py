"""Measures the whole of Metaloop, as it is installed, on a fresh control plane: `python -m bench`."""
