"""Prints each event of a node: consume_amqp.py HOST PORT ADDRESS, the address such as /queue/events."""

import re
import sys

from proton.handlers import MessagingHandler
from proton.reactor import Container


class Consumer(MessagingHandler):
    def on_start(self, event):
        host, port, address = sys.argv[1:]
        connection = event.container.connect(f"amqp://guest:guest@{host}:{port}")
        event.container.create_receiver(connection, address)

    def on_link_opened(self, event):
        print("ready", flush=True)

    def on_message(self, event):
        attributes = {re.sub("^cloudEvents[_:]", "", name): value for name, value in event.message.properties.items()}
        print(attributes["type"], attributes["subject"], bytes(event.message.body).decode(), flush=True)


Container(Consumer()).run()
