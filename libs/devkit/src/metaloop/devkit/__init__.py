"""Everything to run Metaloop on a laptop: a real control plane, an embedded NATS server, and the three services."""
