"""Prints each event of a topic over MQTT 3.1.1: consume_mqtt3.py HOST PORT TOPIC."""

import json
import sys

from paho.mqtt.client import Client, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion

host, port, topic = sys.argv[1:]
client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv311)
client.on_connect = lambda *_: client.subscribe(topic, qos=1)
client.on_subscribe = lambda *_: print("ready", flush=True)


def show(_client, _data, message):
    event = json.loads(message.payload)
    print(event["type"], event["subject"], event["data"], flush=True)


client.on_message = show
client.connect(host, int(port))
client.loop_forever()
