"""Which sinks and settings each protocol takes, what is filled in, and how the others are refused."""

from typing import Any

import pytest

from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.protocol_settings import SETTINGS, SINKS, realize
from relaycast_gateway.delivery.sink_address import parse_sink

NEEDED: dict[str, dict[str, Any]] = {
    "HTTP": {},
    "MQTT3": {"topicname": "t"},
    "MQTT5": {"topicname": "t"},
    "AMQP": {"address": "q"},
    "KAFKA": {"topicname": "t"},
    "NATS": {"subject": "s"},
}
"""The settings without which a protocol cannot do, whatever the sink."""

SINK = {
    "HTTP": "http://h/",
    "MQTT3": "mqtt://h",
    "MQTT5": "mqtt://h",
    "AMQP": "amqp://h",
    "KAFKA": "kafka://h",
    "NATS": "nats://h",
}

MQTT_SINKS = [
    "mqtt://h",
    "mqtt://192.0.2.1:1884/",
    "mqtts://user:secret@h",
    "ws://h:8083/mqtt",
    "wss://[2001:db8::1]/m?a=b",
]
MQTT_OTHERS = ["http://h/", "mqtt:h", "mqtt://", "mqtt://h/topic", "mqtt://one,two"]
VALID = {
    "HTTP": [
        "http://h",
        "https://h/a/b?c=d",
        "http://user:secret@h:8080/",
        "HTTPS://H/",
        "https://[2001:db8::1]:8443/x",
    ],
    "MQTT3": MQTT_SINKS,
    "MQTT5": MQTT_SINKS,
    "AMQP": ["amqp://h/queue", "amqps://h/queue", "amqp://h:5673//queue/a", "amqp://u:p@h/q%20r", "amqp://[::1]/q"],
    "KAFKA": [
        "kafka://h/t",
        "kafka://one:9092,two:9092/t",
        "kafkas://h/t.x_y-z",
        "kafka://u:p@one,two/t",
        "kafka://[::1]:1/t",
    ],
    "NATS": ["nats://h", "tls://h:4443", "nats://user:secret@h", "nats://token@h/", "nats://one,two:4223"],
}
INVALID = {
    "HTTP": ["ftp://h/", "h/path", "http:///path", "http://h:99999/", "https://h/a b"],
    "MQTT3": MQTT_OTHERS,
    "MQTT5": MQTT_OTHERS,
    "AMQP": ["ws://h/q", "amqp://one,two/q", "amqp://h/q?x=y", "amqp://h:0/q", "amqp://h/q#f"],
    "KAFKA": ["http://h/t", "kafka://", "kafka://h/a/b", "kafka://h,/t", "kafka://h/t?x=y"],
    "NATS": ["mqtt://h", "nats://h/subject", "nats://h:port", "ws://h", "nats://h\r\n"],
}


def refused(protocol: str, settings: dict[str, Any], sink: str | None = None) -> InvalidMember:
    with pytest.raises(InvalidMember) as caught:
        realize(protocol, sink or SINK[protocol], {**NEEDED[protocol], **settings})
    return caught.value


@pytest.mark.matrix("CE-25")
@pytest.mark.parametrize(("protocol", "sink"), [(name, sink) for name, sinks in VALID.items() for sink in sinks])
def test_a_sink_of_the_protocol_is_taken(protocol: str, sink: str) -> None:
    needed = {} if parse_sink(sink).path.strip("/") else NEEDED[protocol]
    assert realize(protocol, sink, needed if protocol in {"AMQP", "KAFKA"} else NEEDED[protocol]) or protocol == "HTTP"


@pytest.mark.matrix("CE-25")
@pytest.mark.parametrize(
    "host", ["a..b", ".a", "*.com", "-a", "a-", "a%00b", "%41%2f", "a" * 64, ".".join(["a" * 63] * 5)]
)
def test_a_host_that_cannot_be_a_name_is_refused(host: str) -> None:
    assert refused("HTTP", {}, f"http://{host}/").member == "sink"


@pytest.mark.parametrize("host", ["a", "a.b.", "xn--mnchen-3ya.de", "my_host", "2130706433", "%61.b", "A.b"])
def test_names_of_all_kinds_are_hosts(host: str) -> None:
    realize("HTTP", f"http://{host}/", {})


def test_both_tables_of_sinks_have_five_of_each_protocol() -> None:
    for table in (VALID, INVALID):
        assert {name: len(set(sinks)) for name, sinks in table.items()} == dict.fromkeys(SINKS, 5)


@pytest.mark.matrix("CE-27")
@pytest.mark.parametrize("protocol", ["http", "Mqtt5", "", "WAMP"])
def test_protocols_are_compared_with_their_case(protocol: str) -> None:
    with pytest.raises(InvalidMember, match=r"protocol: got .*, expected one of HTTP, MQTT3, MQTT5, AMQP, KAFKA, NATS"):
        realize(protocol, "http://h/", {})


@pytest.mark.matrix("CE-29")
@pytest.mark.parametrize("protocol", SETTINGS)
def test_settings_may_be_absent_and_unknown_ones_are_refused(protocol: str) -> None:
    if not NEEDED[protocol]:
        assert realize(protocol, SINK[protocol], None) == realize(protocol, SINK[protocol], {})
    wrong = refused(protocol, {"colour": "red"})
    assert wrong.member == "protocolsettings.colour"
    assert all(name in wrong.expected for name in SETTINGS[protocol])


@pytest.mark.matrix("CE-29")
@pytest.mark.parametrize(
    ("protocol", "name", "right"),
    [
        ("KAFKA", "ackmode", "acks?"),
        ("KAFKA", "topicName", "topicname?"),
        ("AMQP", "linkName", "linkname?"),
        ("MQTT5", "user-properties", "userproperties?"),
        ("HTTP", "Method", "method?"),
        ("NATS", "subjects", "subject?"),
    ],
)
def test_the_right_spelling_is_named(protocol: str, name: str, right: str) -> None:
    assert refused(protocol, {name: "x"}).expected.startswith(right)


@pytest.mark.parametrize("settings", [[], "x", 1])
def test_settings_are_an_object(settings: Any) -> None:
    with pytest.raises(InvalidMember, match=r"protocolsettings: .*expected an object"):
        realize("HTTP", "http://h/", settings)


@pytest.mark.matrix("CE-85")
@pytest.mark.parametrize(
    ("protocol", "realized"),
    [
        ("HTTP", {"method": "POST"}),
        ("MQTT3", {"topicname": "t", "qos": 1, "retain": False}),
        ("MQTT5", {"topicname": "t", "qos": 1, "retain": False}),
        ("AMQP", {"address": "q", "sendersettlementmode": "unsettled", "attributeprefix": "cloudEvents_"}),
        ("KAFKA", {"topicname": "t", "clientid": "relaycast", "acks": "all"}),
        ("NATS", {"subject": "s"}),
    ],
)
def test_defaults_are_filled_in_and_realize_to_themselves(protocol: str, realized: dict[str, Any]) -> None:
    assert realize(protocol, SINK[protocol], NEEDED[protocol]) == realized
    assert realize(protocol, SINK[protocol], realized) == realized


@pytest.mark.matrix("CE-58", "CE-115")
@pytest.mark.parametrize(
    "headers",
    [
        {"Connection": "close"},
        {"Transfer-Encoding": "chunked"},
        {"TE": "trailers"},
        {"Proxy-Authorization": "x"},
        {"ce-id": "1"},
        {"CE-Own": "1"},
        {"Content-Type": "text/plain"},
        {"content-encoding": "gzip"},
        {"Host": "other"},
        {"Content-Length": "5"},
        {"Bad Name": "x"},
        {"": "x"},
        {"X-A": "1\r\nX-B: 2"},
        {"X-A": "1\n"},
        {"X-A\r\nX-B": "1"},
        {"X-A": "ë"},
        {"X-A": 1},
        {"X-A": "1", "x-a": "2"},
        {f"X-{number}": "" for number in range(65)},
        {"X-A": "x" * 4_097},
        "X-A: 1",
    ],
)
def test_headers_of_the_connection_the_event_and_broken_ones_are_refused(headers: Any) -> None:
    assert refused("HTTP", {"headers": headers}).member.startswith("protocolsettings.headers")


def test_other_headers_are_kept_as_they_are() -> None:
    headers = {"Authorization": "Bearer x", "X-Own": ""}
    assert realize("HTTP", "http://h/", {"headers": headers}) == {"headers": headers, "method": "POST"}


@pytest.mark.matrix("CE-115")
def test_a_refusal_shows_no_secret() -> None:
    secret = "hunter2"
    with pytest.raises(InvalidMember) as of_sink:
        realize("NATS", f"nats://user:{secret}@h/path", {"subject": "s"})
    assert "nats://***@h:4222/path" in str(of_sink.value)
    with pytest.raises(InvalidMember) as of_text:
        realize("HTTP", f"http://user:{secret}@h b/", {})
    others = [
        refused("HTTP", {"headers": {"Authorization": f"{secret}\n"}}),
        refused("HTTP", {"headers": f"Authorization: {secret}"}),
        refused("HTTP", {"header": {"Authorization": secret}}),
        refused("MQTT5", {"userproperties": {"token": f"{secret}\x00"}}),
        refused("AMQP", {"linkproperties": {"token": [secret]}}),
    ]
    for caught in (of_sink.value, of_text.value, *others):
        assert secret not in str(caught)
        assert secret not in repr(caught)


@pytest.mark.matrix("CE-115")
def test_the_secrets_of_a_sink_are_kept_apart() -> None:
    sink = parse_sink("amqp://us%40er:se%2Fcret@Host/q")
    assert (sink.public, sink.masked) == ("amqp://host:5672/q", "amqp://***@host:5672/q")
    assert sink.secrets == {"identifier": "us@er", "secret": "se/cret"}
    assert "cret" not in repr(sink)
    assert parse_sink("nats://h").secrets == {}


@pytest.mark.matrix("CE-59")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_a_method_with_a_body_is_taken(method: str) -> None:
    assert realize("HTTP", "http://h/", {"method": method}) == {"method": method}


@pytest.mark.matrix("CE-59")
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "post", "", 1, None])
def test_another_method_is_refused(method: Any) -> None:
    assert refused("HTTP", {"method": method}).expected == "POST, PUT or PATCH"


@pytest.mark.matrix("CE-62")
def test_the_handshake_of_webhooks_is_asked_for_by_name() -> None:
    asked = {"requestorigin": "events.example.com", "requestrate": 120}
    assert realize("HTTP", "http://h/", asked) == {"method": "POST", **asked}
    assert refused("HTTP", {"requestrate": 120}).member == "protocolsettings.requestorigin"
    for wrong in ("", "a b", "-a", "a..b", "http://a", "x" * 254, 5):
        assert refused("HTTP", {"requestorigin": wrong}).member == "protocolsettings.requestorigin"
    for rate in (0, -1, "120", 10**9, True):
        assert refused("HTTP", {"requestorigin": "a", "requestrate": rate}).member == "protocolsettings.requestrate"


@pytest.mark.matrix("CE-63")
@pytest.mark.parametrize("protocol", ["MQTT3", "MQTT5"])
def test_a_topic_is_needed(protocol: str) -> None:
    with pytest.raises(InvalidMember, match=r"protocolsettings\.topicname: got nothing, expected the name of a topic"):
        realize(protocol, "mqtt://h", {})
    assert realize(protocol, "mqtt://h", {"topicname": "a/b c/ë"})["topicname"] == "a/b c/ë"


@pytest.mark.matrix("CE-112")
@pytest.mark.parametrize("protocol", ["MQTT3", "MQTT5"])
@pytest.mark.parametrize("topic", ["a/+", "a/#", "+", "#", "a+b", "", "a\x00b", 5, None, "x" * 4_097, "\ud800"])
def test_a_topic_with_wildcards_is_refused(protocol: str, topic: Any) -> None:
    assert refused(protocol, {"topicname": topic}).member == "protocolsettings.topicname"


@pytest.mark.matrix("CE-112", "CE-66")
@pytest.mark.parametrize("name", ["userproperties", "expiry"])
def test_settings_of_mqtt_5_are_refused_for_mqtt_3(name: str) -> None:
    assert "MQTT5" in refused("MQTT3", {name: 5}).expected


@pytest.mark.matrix("CE-64", "CE-65")
@pytest.mark.parametrize(
    ("name", "value"),
    [("qos", 3), ("qos", -1), ("qos", "1"), ("qos", True), ("qos", 1.0), ("retain", 1), ("retain", "true")],
)
def test_another_quality_or_retain_flag_is_refused(name: str, value: Any) -> None:
    assert refused("MQTT5", {name: value}).member == f"protocolsettings.{name}"


@pytest.mark.matrix("CE-66")
@pytest.mark.parametrize(
    ("expiry", "is_good"), [(0, True), (2**32 - 1, True), (2**32, False), (-1, False), ("5", False)]
)
def test_an_expiry_is_a_number_of_seconds(expiry: Any, is_good: bool) -> None:
    if is_good:
        assert realize("MQTT5", "mqtt://h", {"topicname": "t", "expiry": expiry})["expiry"] == expiry
    else:
        assert refused("MQTT5", {"expiry": expiry}).expected == "a whole number from 0 to 4294967295"


@pytest.mark.parametrize("properties", [{"id": "x"}, {"type": "x"}, {"": "x"}, {"a": 1}, {"a": "\x00"}, ["a"]])
def test_user_properties_that_mislead_are_refused(properties: Any) -> None:
    assert refused("MQTT5", {"userproperties": properties}).member.startswith("protocolsettings.userproperties")


@pytest.mark.matrix("CE-70", "CE-116")
def test_the_address_stands_in_the_settings_or_in_the_path() -> None:
    assert realize("AMQP", "amqp://h/a/b%20c", {})["address"] == "a/b c"
    assert realize("AMQP", "amqp://h", {"address": "q"})["address"] == "q"
    assert realize("AMQP", "amqp://h/q", {"address": "q"})["address"] == "q"
    with pytest.raises(InvalidMember, match="address: got nothing"):
        realize("AMQP", "amqp://h/", {})
    with pytest.raises(InvalidMember, match="address: got 'r', expected 'q' as in the sink's path, or nothing"):
        realize("AMQP", "amqp://h/q", {"address": "r"})


@pytest.mark.matrix("CE-72")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sendersettlementmode", "mixed"),
        ("linkname", ""),
        ("linkname", 5),
        ("linkproperties", {"a": 1.5}),
        ("linkproperties", {"a b": "c"}),
        ("linkproperties", {"a": 2**63}),
        ("attributeprefix", "ce-"),
        ("address", ""),
    ],
)
def test_wrong_settings_of_links_are_refused(name: str, value: Any) -> None:
    assert refused("AMQP", {name: value}).member.startswith(f"protocolsettings.{name}")


@pytest.mark.matrix("CE-75")
def test_the_kafka_topic_stands_in_the_settings_or_in_the_path() -> None:
    assert realize("KAFKA", "kafka://one,two/t", {})["topicname"] == "t"
    assert realize("KAFKA", "kafka://one,two", {"topicname": "t"})["topicname"] == "t"
    with pytest.raises(InvalidMember, match="topicname: got nothing"):
        realize("KAFKA", "kafka://h", {})
    with pytest.raises(InvalidMember, match="topicname: got 'u', expected 't'"):
        realize("KAFKA", "kafka://h/t", {"topicname": "u"})
    assert refused("KAFKA", {"topicname": "a b"}).member == "protocolsettings.topicname"
    assert refused("KAFKA", {"topicname": ".."}).member == "protocolsettings.topicname"


@pytest.mark.matrix("CE-76", "CE-77", "CE-78")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partitionkeyextractor", "data.key"),
        ("partitionkeyextractor", "Subject"),
        ("partitionkeyextractor", ""),
        ("clientid", ""),
        ("clientid", "a\nb"),
        ("acks", "2"),
        ("acks", "-1"),
        ("acks", True),
        ("acks", 2),
    ],
)
def test_wrong_settings_of_kafka_are_refused(name: str, value: Any) -> None:
    assert refused("KAFKA", {name: value}).member == f"protocolsettings.{name}"


@pytest.mark.matrix("CE-78")
@pytest.mark.parametrize(("given", "kept"), [("0", "0"), ("1", "1"), ("all", "all"), (0, "0"), (1, "1")])
def test_acks_are_none_the_leaders_or_all(given: Any, kept: str) -> None:
    assert realize("KAFKA", "kafka://h/t", {"acks": given})["acks"] == kept


@pytest.mark.matrix("CE-80")
@pytest.mark.parametrize("subject", ["a.*", "a.>", ">", "*", "", "a..b", ".a", "a.", "a b", "a\r\nPUB", "$JS.API.X", 5])
def test_a_subject_with_wildcards_or_for_the_server_is_refused(subject: Any) -> None:
    assert refused("NATS", {"subject": subject}).member == "protocolsettings.subject"


@pytest.mark.matrix("CE-80")
def test_a_subject_is_needed() -> None:
    with pytest.raises(InvalidMember, match=r"protocolsettings\.subject: got nothing"):
        realize("NATS", "nats://h", {})
    assert realize("NATS", "nats://h", {"subject": "chain.events.ë"}) == {"subject": "chain.events.ë"}


def test_every_setting_is_described_and_its_default_is_valid() -> None:
    for protocol, settings in SETTINGS.items():
        assert protocol in SINKS
        for name, setting in settings.items():
            assert setting.type in {"String", "Integer", "Boolean", "Map"}
            assert setting.description
            if setting.default is not None:
                assert setting.check(name, setting.default) == setting.default
