"""Code that at least two services need. What only one service needs belongs to that service."""
