"""What hooks are sent, and what their answers are: requests, the reading of bodies, the validation of answers."""
