"""What tests and benches need around the running services: a scripted webhook, a plain API client, the audit log.

None of it is part of the product or uses the product's own clients: it observes Metaloop from outside, as a user does.
"""
