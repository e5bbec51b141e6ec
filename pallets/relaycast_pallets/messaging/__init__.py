"""Messages on their way to parachains: chains of hashes, and what the relay chain keeps of queues and channels."""
