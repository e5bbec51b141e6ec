"""WAMP: a router whose topics are the events of the log, with their whole history."""
