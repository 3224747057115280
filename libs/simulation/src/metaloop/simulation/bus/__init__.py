"""A model of the bus: the two links over a broker in memory. It passes the conformance tests of links."""
