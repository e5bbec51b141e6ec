"""The topics of what chains tell: the namespace, then the chain, then the publisher it is about.

| topic | of |
|---|---|
| ``io.relaycast.data.published.p2000`` | the relay chain, about publisher 2000 |
| ``io.relaycast.block.imported.relay`` | the relay chain, about no publisher |
| ``io.relaycast.block.imported.p1000`` | parachain 1000, about no publisher |
| ``io.relaycast.subscriber.updated.p1000.p2000`` | parachain 1000, about publisher 2000 |

So the number of components tells them apart, and the empty component of a wildcard stands for any chain or publisher.
"""

RELAY = "relay"


def chain_topic(namespace: str, para_id: int | None, publisher: int | None) -> str:
    """Return the topic of an event of the parachain ``para_id``, or of the relay chain, about a publisher or none.

    >>> chain_topic("io.relaycast.data.published", None, 2000)
    'io.relaycast.data.published.p2000'
    """
    parts = [namespace]
    if para_id is not None:
        parts.append(f"p{para_id}")
    if publisher is not None:
        parts.append(f"p{publisher}")
    return ".".join(parts) if len(parts) > 1 else f"{namespace}.{RELAY}"
