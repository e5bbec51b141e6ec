"""Prints each event of a subject: consume_nats.py HOST PORT SUBJECT."""

import asyncio
import sys
from urllib.parse import unquote

import nats


async def consume(host, port, subject):
    client = await nats.connect(f"nats://{host}:{port}")
    subscription = await client.subscribe(subject)
    await client.flush()
    print("ready", flush=True)
    async for message in subscription.messages:
        attributes = {name.removeprefix("ce-"): unquote(value) for name, value in message.headers.items()}
        print(attributes["type"], attributes["subject"], message.data.decode(), flush=True)


asyncio.run(consume(*sys.argv[1:]))
