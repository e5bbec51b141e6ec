"""``relaycast history``: what a running server keeps of a topic, from the command line."""

import asyncio
import json as json_text
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.refusal import BadInput, one_line, plain, shown

if TYPE_CHECKING:
    from relaycast.serve.history_reader import AskedHistory

T = TypeVar("T")

ROUTER = "ws://127.0.0.1:9944/wamp"
REALM = "relaycast"

LONGEST_PAYLOAD = 100
"""Characters of an event's arguments in a row of the table."""

What = Annotated[
    str,
    Parameter(
        name="TOPIC|SUBSCRIPTION",
        help="a topic; com.example. with a dot at the end for all below it, com..price for any component; or the id of "
        "a subscription",
    ),
]
Url = Annotated[
    str, Parameter(name="--url", help="the router: ws://HOST/wamp, wss://HOST/wamp, or tcp://HOST:PORT for RawSocket")
]
Realm = Annotated[str, Parameter(name="--realm", help="the realm that the topic is in")]
Kind = Annotated[
    Literal["exact", "prefix", "wildcard"] | None,
    Parameter(name="--match", help="how the topic is compared; else as it is written"),
]
MostEvents = Annotated[
    int | None, Parameter(name="--limit", help="print at most this many events; with --follow the newest ones of those")
]
Reverse = Annotated[bool, Parameter(name="--reverse", help="print the newest event first")]
From = Annotated[
    list[str] | None,
    Parameter(name="--from", help="TIME or PUBLICATION: events from then on; both may be given, as below"),
]
After = Annotated[
    list[str] | None, Parameter(name="--after", help="TIME or PUBLICATION: events after it, without itself")
]
Before = Annotated[
    list[str] | None, Parameter(name="--before", help="TIME or PUBLICATION: events before it, without itself")
]
Until = Annotated[list[str] | None, Parameter(name="--until", help="TIME or PUBLICATION: events up to it, with itself")]
Topic = Annotated[
    str | None, Parameter(name="--topic", help="only events of this topic, where many belong to the history")
]
Follow = Annotated[bool, Parameter(name="--follow", help="go on with each event as it is published, until Ctrl-C")]
TokenFile = Annotated[
    str | None,
    Parameter(
        name="--token-file",
        help="a file whose first line begins with your token for the server, behind it name=NAME as in the server's",
    ),
]


def history(
    what: What,
    /,
    *,
    limit: MostEvents = None,
    reverse: Reverse = False,
    from_: From = None,
    after: After = None,
    before: Before = None,
    until: Until = None,
    topic: Topic = None,
    match: Kind = None,
    follow: Follow = False,
    url: Url = ROUTER,
    realm: Realm = REALM,
    token_file: TokenFile = None,
    json: Json = False,
) -> ExitCode:
    """Print the events that a running server keeps of a topic, the oldest first: time, publication, topic, arguments.

    A TIME is RFC 3339, such as 2026-01-31T12:00:00Z. A PUBLICATION is the id of an event, the second column. With
    --json each event is a line of JSON with everything that the router says of it; bytes are 0x and hex digits.

    With --follow, a lost connection is reported on stderr and restored, and output continues after the last event.

    Example: relaycast history io.relaycast.data.published.p2000 --limit 10 --reverse

    Example: relaycast history io.relaycast. --after 2026-01-31T12:00:00Z --json

    Example: relaycast history com.example.feed --limit 5 --follow
    """
    from relaycast.serve.history_reader import asked_history  # noqa: PLC0415

    bounds = {"from": from_, "after": after, "before": before, "until": until}
    asked = asked_history(what, match, bounds, topic=topic, limit=limit, is_reverse=reverse)
    if follow and (reverse or before or until):
        option = "--reverse" if reverse else "--before" if before else "--until"
        raise BadInput("--follow", f"{option} beside it", "one of them: what is published later comes last")
    asyncio.run(_print(asked, url, realm, token_file, follow=follow, as_json=json))
    return ExitCode.FINE


async def _print(
    asked: "AskedHistory", url: str, realm: str, token_file: str | None, *, follow: bool, as_json: bool
) -> None:
    from relaycast.serve.history_reader import followed, kept  # noqa: PLC0415

    place = url, realm, token_file
    events = _until_stopped(followed(asked, *place, _tell)) if follow else kept(asked, *place)
    rows = 0
    async with aclosing(events):
        async for event, topic in events:
            print(json_text.dumps(event, default=_text) if as_json else _row(event, topic))
            rows += 1
            if follow:
                sys.stdout.flush()
    if not rows and not as_json:
        print("no events")


def _tell(line: str) -> None:
    print(f"relaycast: {one_line(line)}", file=sys.stderr, flush=True)


async def _until_stopped(events: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Yield events until Ctrl-C or SIGTERM."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    stopped = asyncio.create_task(asked.wait())
    try:
        while True:
            following = asyncio.ensure_future(anext(events))
            await asyncio.wait({following, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                await asyncio.wait({following})
                return
            yield following.result()
    finally:
        stopped.cancel()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


_IN_SUBJECT = ("publisher", "key")
"""Members that topic and subject tell already."""


def _row(event: dict[str, Any], topic: str) -> str:
    subject = event.get("details", {}).get("_subject")
    said = [] if subject is None else [str(subject)]
    said += [json_text.dumps(it, default=_text, ensure_ascii=False) for it in event.get("args", ())]
    said += [
        f"{name}={json_text.dumps(value, default=_text, ensure_ascii=False)}"
        for name, value in event.get("kwargs", {}).items()
        if subject is None or name not in _IN_SUBJECT
    ]
    text = " ".join(said)
    if len(text) > LONGEST_PAYLOAD:
        text = f"{text[:LONGEST_PAYLOAD]}..."
    return plain(f"{event['timestamp']:<30}  {event['publication']:>16}  {topic}  {text}").rstrip()


def _text(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"0x{bytes(value).hex()}"
    return shown(value)
