"""What chapter 7 uses besides the gateway: chains that publish, a picture of a log, the checks of its exercises."""

from collections.abc import Mapping, Sequence

import relaycast as rc
import relaycast_gateway as rg
from relaycast_gateway.cloudevents import attributes_of, compile_filter
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.matching import Match, TopicPattern
from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, HistoryRule, HistoryRules

from lesson import Table, Verdict
from trie_pictures import Picture, framed

START_OF_2025 = 1_735_689_600
"""The time of block 0, in seconds: block 1 comes six seconds later."""

COLOURS = {"data.published": "#f8bbd0", "subscriber.updated": "#81c784"}
"""The colours of cells in the picture of a log, by the end of the namespace."""


def publishing_network() -> rc.Network:
    """Return a network with two publishers and a reader."""
    net = rc.Network(seed=7)
    prices = [net.publisher(2000).publish("price/dot", b"7.00"), net.publisher(2000).feed("price/ksm")]
    net.publisher(2001).publish("weather/lisbon", b"21 C")
    net.subscriber(3000, keys=prices)
    return net


def key_names(net: rc.Network) -> dict[tuple[int, bytes], str]:
    """Return the names of all keys: the chains know hashes alone."""
    feeds = [net.publisher(2000).feed("price/dot"), net.publisher(2000).feed("price/ksm")]
    return {(it.publisher, it.key): it.name for it in [*feeds, net.publisher(2001).feed("weather/lisbon")]}


def live(net: rc.Network, clock: rg.VirtualClock, log: EventLog, *, blocks: int) -> None:
    """Publish both prices and let a block pass, ``blocks`` times; set the clock to 300 ms after each block's time."""
    for _ in range(blocks):
        block = net.chains.relay_chain.head.header.number + 1
        clock.set((START_OF_2025 + 6 * block) * 1_000_000_000 + 300_000_000)
        net.publisher(2000).publish("price/dot", f"7.{block:02}".encode())
        net.publisher(2000).publish("price/ksm", f"31.{block:02}".encode(), ttl=4)
        net.run(blocks=1)
        log.purge()  # returns when the events of this block are stored


def log_of(retention: Retention, *, blocks: int) -> tuple[EventLog, dict[int, rg.EventRecord]]:
    """Return a log after ``blocks`` blocks, and by number every event that was ever in it."""
    clock, net = rg.VirtualClock(), publishing_network()
    gateway = Gateway.open(clock=clock, retention=retention)
    gateway.follow(net.chains, "lesson", key_names=lambda: key_names(net))
    everything: dict[int, rg.EventRecord] = {}
    for _ in range(blocks):
        live(net, clock, gateway.log, blocks=1)
        everything |= {it.seq: it for it in gateway.log.read()}
    return gateway.log, everything


def history_page(log: EventLog, topics: TopicPattern, **bounds: object) -> list[rg.EventRecord]:
    """Return the newest three events of these topics within the bounds, as a router of WAMP answers a subscriber."""
    history = EventHistory(log, HistoryRules([HistoryRule(TopicPattern("io.relaycast.", Match.PREFIX))]))
    query = HistoryQuery.of([1], {"limit": 3, "reverse": True, **bounds})
    page: list[rg.EventRecord] = history.page(topics, query, authid="anna", authrole="user", most_events=100).records
    return page


def events_table(records: Sequence[rg.EventRecord]) -> Table:
    """Return a row for each publication and each callback."""
    return Table(
        ("seq", "id", "namespace", "subject", "happened at", "received at"),
        [
            (it.seq, it.text_id, it.namespace, it.subject or "", _seconds(it.occurred_ns), _seconds(it.received_ns))
            for it in records
            if it.namespace in {"io.relaycast.data.published", "io.relaycast.subscriber.updated"}
        ],
    )


def draw_log(
    records: Sequence[rg.EventRecord], *, history_start: int = 1, cursors: Mapping[int, str] | None = None
) -> Picture:
    """Draw a cell for each event; dropped events, which come before ``history_start``, are empty."""
    drawn: list[str] = []
    for record in records:
        left, top = 8 + 44 * ((record.seq - 1) % 18), 8 + 54 * ((record.seq - 1) // 18)
        kept = record.seq >= history_start
        fill = COLOURS.get(record.namespace.removeprefix("io.relaycast."), "#eceff1") if kept else "#fff"
        dash = "" if kept else ' stroke-dasharray="3 3"'
        drawn.append(
            f'<rect x="{left}" y="{top}" width="40" height="24" fill="{fill}" stroke="#90a4ae"{dash}/>'
            f'<text x="{left + 20}" y="{top + 16}" text-anchor="middle">{record.text_id if kept else ""}</text>'
        )
        said = (cursors or {}).get(record.seq)
        if said:
            drawn.append(f'<text x="{left + 20}" y="{top + 38}" text-anchor="middle">▲ {said}</text>')
    return framed("".join(drawn), 808, 16 + 54 * -(-records[-1].seq // 18), "The events of the log in their order")


def check_filter(written: object, events: Sequence[rg.EventRecord]) -> Verdict:
    """Check the filter of the first exercise against the events, and against feeds yet to come."""
    if not isinstance(written, dict | list):
        return Verdict(False, "The answer is a dictionary with one dialect, such as exact, prefix, suffix or all.")
    try:
        selects = compile_filter(written)
    except ValueError as error:
        return Verdict(False, f"That is no filter: {error}.")
    wanted = {it.seq for it in events if it.namespace == "io.relaycast.data.published" and it.subject == "price/ksm"}
    found = {it.seq for it in events if selects(attributes_of(it))}
    if found - wanted:
        example = next(it for it in events if it.seq in found - wanted)
        return Verdict(
            False,
            f"The filter chooses {len(found - wanted)} events that the dashboard does not want, such as "
            f"{example.text_id}: {example.namespace}, subject {example.subject or 'none'}.",
        )
    if wanted - found:
        return Verdict(False, f"The filter misses {len(wanted - found)} of {len(wanted)} events.")
    # The same filter has to hold for a feed that was not there when it was written.
    sample = {"type": "io.relaycast.data.published", "ttlstate": "valid_for", "publisher": 2002}
    chooses_price, chooses_weather = (selects({**sample, "subject": it}) for it in ("price/new", "weather/lisbon"))
    if not chooses_price or chooses_weather:
        but = (
            "if the weather expired, it would be chosen, too" if chooses_price else "it misses a new price that expires"
        )
        return Verdict(False, f"It fits these events. But {but}.")
    return Verdict(True, f"It chooses {len(found)} of {len(events)} events, and will choose prices yet to come.")


def check_return(given: object, log: EventLog, cursor: int) -> Verdict:
    """Check how many events a consumer with this ``cursor`` gets from the log, and how many it has lost."""
    if not (isinstance(given, tuple) and len(given) == 2 and all(type(number) is int for number in given)):
        return Verdict(False, "The answer is a pair of numbers, as (gets, lost).")
    gets, lost = given
    read = log.read(after=cursor)
    if gets != len(read):
        return Verdict(
            False,
            f"The consumer does not get {gets:,}. It begins with the oldest event that is kept, or right after its "
            "cursor: whichever comes later.",
        )
    if lost != log.last_seq - cursor - len(read):
        return Verdict(False, "The first number is right. Lost are those after the cursor that are not kept.")
    return Verdict(True, "Events that it had handled before do not count: it needs them no more.")


def _seconds(moment_ns: int) -> str:
    """Return the text for a moment of the first minute of 2025."""
    return f"00:00:{moment_ns / 1_000_000_000 - START_OF_2025:04.1f}"
