"""What a chain says of itself: the metadata by which clients decode its storage, calls, events and errors."""
