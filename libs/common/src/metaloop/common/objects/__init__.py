"""Kubernetes objects of any kind: their common fields, owner references, resources and label selectors."""
