"""Prints each event of a topic, once it is connected: consume_mqtt.py HOST PORT TOPIC."""

import sys

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

host, port, topic = sys.argv[1:]
client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
client.on_connect = lambda *_: client.subscribe(topic, qos=1)
client.on_subscribe = lambda *_: print("ready", flush=True)


def show(_client, _data, message):
    attributes = dict(message.properties.UserProperty)
    print(attributes["type"], attributes["subject"], message.payload.decode(), flush=True)


client.on_message = show
client.connect(host, int(port))
client.loop_forever()
