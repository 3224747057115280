"""Short requests to one server, over connections that are kept: what a sync does eight times, and so the cheapest way that there is (decision 2)."""
