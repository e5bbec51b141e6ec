"""An event with attributes of every type, and filters that select it or do not."""

from typing import Any

from relaycast_gateway.cloudevents.event import Timestamp

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "A-1",
    "source": "/sensors/tn-1",
    "type": "com.github.push.created",
    "subject": "Étoile.PNG",
    "time": Timestamp(1_524_746_889_000_000_000),  # 2018-04-26T12:48:09Z
    "ext": "custom.value",
    "count": 5,
    "debt": -17,
    "flag": True,
    "off": False,
    "seen": Timestamp(1_524_746_889_000_000_120),
    "raw": b"\x00\xff",
    "none": None,
    "data": "com.github",
}


TYPE = {"exact": {"type": "com.github.push.created"}}


OTHER = {"exact": {"type": "com.github.pull"}}


ABSENT = {"exact": {"missing": "x"}}
