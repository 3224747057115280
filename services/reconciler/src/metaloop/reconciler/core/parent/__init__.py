"""What is written to the parent itself: its finalizer, its status, its metadata, and that it is paused."""
