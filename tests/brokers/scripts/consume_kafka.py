"""Prints each event of a topic, from its beginning: consume_kafka.py HOST PORT TOPIC."""

import sys

from confluent_kafka import Consumer

host, port, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": f"{host}:{port}", "group.id": "example", "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
print("ready", flush=True)
while True:
    message = consumer.poll(1)
    if message is not None and message.error() is None:
        attributes = {name.removeprefix("ce_"): value.decode() for name, value in message.headers()}
        print(attributes["type"], attributes["subject"], message.value().decode(), flush=True)
