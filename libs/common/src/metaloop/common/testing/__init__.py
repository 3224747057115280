"""Builders, a fake clock, verified fakes; imported by tests only."""
