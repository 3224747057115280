"""What hooks are sent, and what they answer: requests, response bodies, answers and their validation."""
