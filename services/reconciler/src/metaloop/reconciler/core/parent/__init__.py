"""What is written to the parent itself: its finalizer, status and metadata, and the condition that it is paused."""
