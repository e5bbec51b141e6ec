"""Names that the texts give to headers, configuration keys and system namespaces, and ours beside them.

Source: ICRC-72, "Event Headers", "Publications Configs", "Subscription Configs"; ICRC-77, "Replay Headers" and
"Control Plane".
"""

HASH = "icrc72:eventData:hash"
BROADCASTER_RECEIVED = "icrc72:broadcaster:received"
BROADCASTER_PRIORITY = "icrc72:broadcaster:priority"
BROADCASTER_SENT = "icrc72:broadcaster:sent"
RELAY_SENT = "icrc72:relay:sent"
RELAY_RECEIVED = "icrc72:relay:received"
EVENT_TIMESTAMP = "icrc72:event:timestamp"
"""Ours: the time of the event itself, nanoseconds since 1970. A notification's own time is that of its making."""

OWN_HEADER = "relaycast:broadcaster"
"""Ours: the principal of the broadcaster that took the event from its publisher."""

RESERVED_HEADERS = ("icrc72:broadcaster:", "icrc72:relay:")
"""Beginnings of headers that a publisher may not give."""

PUBLICATION = "icrc72:publication:"
SKIP = "icrc72:subscription:skip"
FILTER = "icrc72:subscription:filter"
STOPPED = "icrc72:subscription:stopped"
SUBSCRIBER_URL = "relaycast:subscriber:url"
"""Ours: where a subscriber or publisher outside of the process is served, such as ``http://localhost:8080``."""

TRUSTED = "relaycast:subscription:trusted"
"""Ours: true calls ``icrc72_handle_notification_trusted``, whose answer confirms."""

PRIORITY = "relaycast:subscription:priority"
"""Ours: a Nat; subscriptions with a higher one are notified first, 0 by default."""

REPLAY = "icrc77:replay"
REPLAY_ID = "icrc77:replay:id"
REPLAY_START_ID = "icrc77:replay:start_id"
REPLAY_END_ID = "icrc77:replay:end_id"
REPLAY_END = "icrc77:replay:end"
CAPABLE = "icrc77:capable"
PRICING = "icrc77:pricing"

MOST_REPLAYED = "icrc77:limit:events"
"""Ours: a Nat, the most events that a publisher replays at once."""

REPLAY_RATE = "icrc77:limit:rate"
"""Ours: a Nat, the most events that a publisher replays in a second."""

REPLAY_SENT = "icrc77:replay:stats:sent"
"""Ours: a Nat, the number of a replay's notifications sent to its requester, each counted once."""

REPLAY_SKIPPED = "icrc77:replay:stats:skipped"
"""Ours: a Nat, the number of a replay's events left out: unreadable, not matching their hash, or refused."""

REPLAY_REGISTERED = "icrc77:replay:stats:registered"

SYSTEM_NAMESPACE = "icrc72:{role}:sys:{principal}"

UNORDERED = "relaycast:publication:unordered"
"""Ours: true says that the order of events does not matter; they are sent without the id of the one before."""

ICRC3_ONLY = "relaycast:publication:icrc3"
"""Ours: true says that the data of events is of the types of ICRC-3 alone; others are refused."""

FILTER_LANGUAGE = "relaycast:publication:filter:language"
"""Ours: a Text, the name of the language that filters of this publication are written in, CandyPath by default."""

EPOCH_CLOSED = "relaycast:epoch:closed"
"""Ours: a Nat, the epoch of a namespace that the event ends."""
