"""What at least two services need; nothing lives here for one alone."""
