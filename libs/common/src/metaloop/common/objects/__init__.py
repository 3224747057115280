"""Kubernetes objects as values: what can be said of any object, whatever its kind."""
