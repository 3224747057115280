"""Access to the Kubernetes API: credentials, client, watches, discovery and Events.

The only package that imports `kubernetes`.
"""
