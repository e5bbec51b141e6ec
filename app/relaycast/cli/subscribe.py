"""``relaycast subscribe``: have a running server push what its chains tell, and see how that goes."""

import json as json_text
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.refusal import BadInput, one_line, short, shown
from relaycast.terminal import counted, say

if TYPE_CHECKING:
    from relaycast.serve.subscription_client import SubscriptionClient

SERVER = "http://127.0.0.1:9944"

PROTOCOLS = {
    "http": "HTTP",
    "https": "HTTP",
    "mqtt": "MQTT5",
    "mqtts": "MQTT5",
    "amqp": "AMQP",
    "amqps": "AMQP",
    "kafka": "KAFKA",
    "kafkas": "KAFKA",
    "nats": "NATS",
}
"""What a sink's scheme stands for where no protocol is given."""

Url = Annotated[str, Parameter(name="--url", help="the server, as its ready screen prints it")]
TokenFile = Annotated[
    str | None, Parameter(name="--token-file", help="a file whose first line begins with your token for the server")
]
Id = Annotated[str, Parameter(help="the id of a subscription")]
PlainSink = Annotated[
    str, Parameter(name="SINK", help="where events go: http://HOST/PATH, mqtt://HOST, amqp://HOST/QUEUE ...")
]
Sink = Annotated[str | None, Parameter(name="--sink", help="the same as an option")]
Protocol = Annotated[
    str | None,
    Parameter(name="--protocol", help="HTTP, MQTT3, MQTT5, AMQP, KAFKA or NATS; else what the sink's scheme says"),
]
Types = Annotated[
    list[str] | None, Parameter(name="--type", help="only events of this type; may be given several times")
]
Source = Annotated[str | None, Parameter(name="--source", help="only events with exactly this source")]
Filter = Annotated[
    str | None, Parameter(name="--filter", help='a filter in JSON, such as \'{"prefix": {"subject": "2000/"}}\'')
]
Sql = Annotated[
    str | None, Parameter(name="--sql", help="a filter in CloudEvents SQL, such as \"subject LIKE '2000/%'\"")
]
Config = Annotated[
    list[str] | None, Parameter(name="--config", help="KEY=VALUE: data, interval, proof or since; may come again")
]
Setting = Annotated[
    list[str] | None,
    Parameter(name="--setting", help="KEY=VALUE, a setting of the protocol such as topicname=feed; may come again"),
]
Delivery = Annotated[
    list[str] | None,
    Parameter(name="--delivery", help="KEY=VALUE: attempts, maxage, timeout, window or contentmode; may come again"),
]
Object = Annotated[
    str | None,
    Parameter(name="--file", help="the subscription object itself, in JSON; a file, or - for standard input"),
]
Redeliver = Annotated[bool, Parameter(name="--redeliver", help="try all of them again")]

app = App(name="subscribe", help="Push the events of a running server to a webhook or a broker.")


@app.command
def add(
    address: PlainSink = "",
    /,
    *,
    sink: Sink = None,
    protocol: Protocol = None,
    type: Types = None,  # noqa: A002 - the name of the option
    source: Source = None,
    filter: Filter = None,  # noqa: A002 - the name of the option
    sql: Sql = None,
    config: Config = None,
    setting: Setting = None,
    delivery: Delivery = None,
    file: Object = None,
    url: Url = SERVER,
    token_file: TokenFile = None,
    json: Json = False,
) -> ExitCode:
    """Create a subscription and print its id; with --json, all of it with the defaults filled in.

    A sink on this machine or in a private network must be allowed when the server is started (--allow-sink).

    Example: relaycast subscribe add http://localhost:8080/ --type io.relaycast.data.published
    """
    if address and sink is not None:
        raise BadInput("--sink", f"{shown(sink)} beside {shown(address)}", "one of them")
    members: dict[str, Any] = {} if file is None else _object(file)
    members |= {"sink": sink or address} if sink or address else {}
    if "sink" not in members:
        raise BadInput("subscribe add", "no sink", "where events go, such as http://localhost:8080/")
    scheme = str(members.get("sink", "")).partition(":")[0].lower()
    if protocol or "protocol" not in members:
        members |= {"protocol": protocol or PROTOCOLS.get(scheme, "HTTP")}
    members |= {"types": type} if type else {}
    members |= {"source": source} if source else {}
    if filter and sql:
        raise BadInput("--filter", "--filter and --sql", "one of them")
    members |= {"filter": _json("--filter", filter)} if filter else {}
    members |= {"filter": {"sql": sql}} if sql else {}
    for name, option, given in (
        ("config", "--config", config),
        ("protocolsettings", "--setting", setting),
        ("delivery", "--delivery", delivery),
    ):
        if given:
            members[name] = dict(members.get(name) or {}) | dict(_pair(option, each) for each in given)
    with _asking(url, token_file) as client:
        made = client.ask("POST", "/subscriptions", members)
        _print(made) if json else print(short(made["id"]))
    return ExitCode.FINE


@app.command(name="list")
def list_(*, url: Url = SERVER, token_file: TokenFile = None, json: Json = False) -> ExitCode:
    """List your subscriptions: where events go and how that fares.

    Example: relaycast subscribe list
    """
    with _asking(url, token_file) as client:
        found = client.pages("/subscriptions?limit=1000")
        if json:
            _print(found)
            return ExitCode.FINE
        fares = {state["subscription"]: state for state in client.pages("/deliveries?limit=1000")}
        hows = [_fares(fares[it["id"]]) if it["id"] in fares else "removed" for it in found]
        lines = [f"{it['id']}  {it['protocol']:<5}  {it['sink']}  {how}" for it, how in zip(found, hows, strict=True)]
    for line in lines or ["no subscriptions"]:
        say(line, hanging=4)
    return ExitCode.FINE


@app.command
def show(subscription: Id, /, *, url: Url = SERVER, token_file: TokenFile = None) -> ExitCode:
    """Print a subscription and how its delivery fares, as JSON; secrets are masked.

    Example: relaycast subscribe show 01HF7YAT00AB0000000000000X
    """
    from relaycast.serve.subscription_client import path_of  # noqa: PLC0415

    with _asking(url, token_file) as client:
        found = client.ask("GET", path_of("subscriptions", subscription))
        fares = client.ask("GET", path_of("subscriptions", subscription, "delivery"))
    _print({"subscription": found, "delivery": fares})
    return ExitCode.FINE


@app.command
def remove(subscription: Id, /, *, url: Url = SERVER, token_file: TokenFile = None) -> ExitCode:
    """Delete a subscription with its dead letters. Nothing is sent afterwards.

    Example: relaycast subscribe remove 01HF7YAT00AB0000000000000X
    """
    from relaycast.serve.subscription_client import path_of  # noqa: PLC0415

    with _asking(url, token_file) as client:
        removed = short(client.ask("DELETE", path_of("subscriptions", subscription))["id"])
    print(f"removed {removed}")
    return ExitCode.FINE


@app.command
def deadletters(
    subscription: Id,
    /,
    *,
    redeliver: Redeliver = False,
    url: Url = SERVER,
    token_file: TokenFile = None,
    json: Json = False,
) -> ExitCode:
    """List the events that were given up for a subscription, with the reason; or try them again.

    Example: relaycast subscribe deadletters 01HF7YAT00AB0000000000000X --redeliver
    """
    from relaycast.serve.subscription_client import path_of  # noqa: PLC0415

    path = path_of("deadletters", subscription)
    with _asking(url, token_file) as client:
        if redeliver:
            count = client.ask("POST", f"{path}/redeliver")["redelivered"]
            print(f"{counted(count, 'event')} to be delivered again")
            return ExitCode.FINE
        found = client.pages(f"{path}?limit=1000")
        if json:
            _print(found)
            return ExitCode.FINE
        lines = [
            f"{it['sequence']}  {it.get('type', 'no longer kept')}  {counted(it['attempts'], 'attempt')}, until "
            f"{it['givenup']}: {it['reason']}"
            for it in found
        ]
    for line in lines or ["no dead letters"]:
        say(line, hanging=4)
    return ExitCode.FINE


@contextmanager
def _asking(url: str, token_file: str | None) -> Iterator["SubscriptionClient"]:
    """Yield a client; an answer with unexpected members is refused with one line."""
    from relaycast.serve.subscription_client import SubscriptionClient  # noqa: PLC0415 - loads an HTTP client

    client = SubscriptionClient(url, token_file)
    try:
        yield client
    except (AttributeError, KeyError, TypeError, ValueError):
        raise client.stranger() from None


def _fares(state: dict[str, Any]) -> str:
    said = f"{state['status']}, {state['delivered']:,} delivered"
    said += f", {state['pending']:,} pending" if state["pending"] else ""
    said += f", {state['behind']:,} behind" if state["behind"] else ""
    said += f", {counted(state['dead'], 'dead letter')}" if state["dead"] else ""
    return f"{said}, last error: {state['lasterror']}" if state["status"] != "active" and "lasterror" in state else said


def _pair(option: str, given: str) -> tuple[str, Any]:
    """Return the key and the value of ``KEY=VALUE``; a value that is no JSON is a text."""
    key, equals, text = given.partition("=")
    if not equals or not key:
        raise BadInput(option, shown(given), "KEY=VALUE")
    try:
        return key, json_text.loads(text)
    except ValueError:
        return key, text


def _json(place: str, text: str) -> Any:
    try:
        return json_text.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(place, one_line(str(error)).lower(), "JSON") from None


def _object(file: str) -> dict[str, Any]:
    from relaycast.inputs import place_of, read_bytes  # noqa: PLC0415

    try:
        text = read_bytes(file).decode()
    except UnicodeDecodeError:
        raise BadInput(place_of(file), "bytes that are no text", "a subscription in JSON") from None
    found = _json(place_of(file), text)
    if not isinstance(found, dict):
        raise BadInput(place_of(file), shown(found), "an object, the subscription")
    return found


def _print(value: object) -> None:
    print(json_text.dumps(value, indent=2))
