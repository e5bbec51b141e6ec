"""A WAMP client: connects, calls, subscribes, publishes and lets others call."""
