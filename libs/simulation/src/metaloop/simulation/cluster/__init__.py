"""A model of the API server with its garbage collector, as far as Metaloop's services use them.

Not modelled: admission, validation by schemas, access rules, server-side apply, foreground deletion, namespaces that
end.
"""
