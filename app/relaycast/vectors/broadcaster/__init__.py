"""The vectors of the broadcaster: sequences of calls, messages, expiry and departures."""
