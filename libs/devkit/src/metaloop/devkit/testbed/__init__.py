"""What tests and benches put around the running services: a scripted webhook, a plain API client, the audit log.

Nothing here is part of the product, nor does it use the product's own clients: it looks at Metaloop from outside, as a user does.
"""
