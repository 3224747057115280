"""All that it takes to run Metaloop on a laptop: a real control plane, a NATS server, and the three services."""
