"""Walkthrough, chapter 7: events, history and replay."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="7. Events, history, replay", width="medium")

with app.setup:
    from collections.abc import Mapping, Sequence

    import marimo as mo

    import relaycast as rc
    import relaycast_gateway as rg
    import relaycast_pallets as rp
    import relaycast_trie as rt
    from relaycast_gateway.cloudevents import attributes_of, compile_filter
    from relaycast_gateway.gateway import Gateway
    from relaycast_gateway.icrc import candy_path
    from relaycast_gateway.log import EventLog, Retention
    from relaycast_gateway.matching import Match, TopicPattern
    from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, HistoryRule, HistoryRules

    from lesson import Aid, Table, Verdict
    from trie_pictures import Picture, framed


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 7. Events, history, replay

    Until now all readers were parachains. Most consumers of a feed are not: dashboards, indexers, webhooks, canisters.
    They want to hear what happens, and they want to know what happened while they were away. For them the *gateway*
    keeps an **event log**: everything that the chains tell, in one order, once.

    Parachain 2000 publishes two prices in every block; that of `ksm` lives for four blocks. Parachain 2001 publishes
    the weather, and 3000 reads the prices. A gateway listens to the chains. Its clock is set by hand here: the gateway
    hears of each block 300 milliseconds after the time of the block.
    """)
    return


@app.cell
def _():
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
        """Publish and let blocks pass."""
        for _ in range(blocks):
            block = net.chains.relay_chain.head.header.number + 1
            clock.set((1_735_689_600 + 6 * block) * 1_000_000_000 + 300_000_000)
            net.publisher(2000).publish("price/dot", f"7.{block:02}".encode())
            net.publisher(2000).publish("price/ksm", f"31.{block:02}".encode(), ttl=4)
            net.run(blocks=1)
            log.purge()  # returns when the events of this block are stored

    clock = rg.VirtualClock()
    gateway = Gateway.open(clock=clock)
    net = publishing_network()
    feed = gateway.follow(net.chains, "lesson", key_names=lambda: key_names(net))
    live(net, clock, gateway.log, blocks=3)
    log = gateway.log
    records = log.read()
    Table(
        ("seq", "id", "namespace", "subject", "happened at", "received at"),
        [
            (it.seq, it.text_id, it.namespace, it.subject or "", seconds(it.occurred_ns), seconds(it.received_ns))
            for it in records
            if it.namespace in {"io.relaycast.data.published", "io.relaycast.subscriber.updated"}
        ],
    )
    return clock, feed, key_names, live, log, net, publishing_network, records


@app.function(hide_code=True)
def seconds(moment_ns: int) -> str:
    """Show a moment of the first minute of 2025."""
    return f"00:00:{moment_ns / 1_000_000_000 - 1_735_689_600:04.1f}"


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The numbers have gaps because the table leaves out other events: blocks, messages, new publishers. In the log there
    are none: `seq` counts 1, 2, 3, and it is the **only** order. Times are no order; whole blocks share one.

    The *id* is a number, too, and as text it is written in Base32 by Crockford: 32 digits, without the letters I, L, O
    and U, which people misread. After `9` comes `A`, after `Z` comes `10`. A consumer remembers ids to know what it has
    already seen; `seq` is what it resumes from.

    Each event as a cell, in the order of the log; pink is a publication, green the callback at the reader:
    """)
    return


@app.cell(hide_code=True)
def _(records):
    def draw_log(
        records: Sequence[rg.EventRecord], *, history_start: int = 1, cursors: Mapping[int, str] | None = None
    ) -> Picture:
        colours = {"data.published": "#f48fb1", "subscriber.updated": "#81c784"}
        drawn: list[str] = []
        for record in records:
            left, top = 8 + 44 * ((record.seq - 1) % 18), 8 + 54 * ((record.seq - 1) // 18)
            kept = record.seq >= history_start
            fill = colours.get(record.namespace.removeprefix("io.relaycast."), "#eceff1") if kept else "#fff"
            dash = "" if kept else ' stroke-dasharray="3 3"'
            drawn.append(
                f'<rect x="{left}" y="{top}" width="40" height="24" fill="{fill}" stroke="#90a4ae"{dash}/>'
                f'<text x="{left + 20}" y="{top + 16}" text-anchor="middle">{record.text_id if kept else ""}</text>'
            )
            said = (cursors or {}).get(record.seq)
            if said:
                drawn.append(f'<text x="{left + 20}" y="{top + 38}" text-anchor="middle">▲ {said}</text>')
        return framed("".join(drawn), 808, 16 + 54 * -(-records[-1].seq // 18))

    draw_log(records)
    return (draw_log,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## One event, looked at closely

    An event says more than its table row: a tree of values, its *data*, and headers. Every protocol that the gateway
    speaks is derived from these; here are the attributes of the CloudEvent:
    """)
    return


@app.cell
def _(records):
    first = next(it for it in records if it.namespace.endswith(".published") and it.subject == "price/dot")
    Table(("attribute", "value"), [(name, str(value)) for name, value in attributes_of(first).items()])
    return (first,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Choosing events

    No consumer wants everything. A **filter** is a small expression that is true for the events one wants. There are
    three languages, since there are three kinds of consumers:

    - CloudEvents look at *attributes*: `{"prefix": {"subject": "price/"}}`, combined with `all`, `any` and `not`;
    - WAMP looks at the *topic*: the namespace, the chain and the publisher, such as
      `io.relaycast.data.published.p2000`;
    - ICRC-72 looks into the *data*: `publisher == 2000`.

    Three ways to say "what parachain 2000 published":
    """)
    return


@app.cell
def _(records):
    by_attributes = compile_filter({"all": [{"suffix": {"type": ".published"}}, {"exact": {"publisher": "2000"}}]})
    by_topic = TopicPattern("io.relaycast.data.published.p2000")
    by_data = candy_path("publisher == 2000 & superseded == false")
    chosen = {
        "attributes": [it.text_id for it in records if by_attributes(attributes_of(it))],
        "topic": [it.text_id for it in records if by_topic.matches(it.topic)],
        "data": [it.text_id for it in records if by_data(it.data)],
    }
    Table(("looks at", "chooses the events"), [(what, " ".join(ids)) for what, ids in chosen.items()])
    return (chosen,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ### Do you see the difference?

    The third one chooses fewer events. `price/dot` was published twice in the same block: once when the network was
    made and once for the first block, and both arrived together. The second value **superseded** the first one in the
    same block, so the first one was never in a sealed state. The event says so, and has neither value nor proof.

    Three more blocks, so that there is more to choose from:
    """)
    return


@app.cell
def _(clock, live, log, net):
    live(net, clock, log, blocks=3)
    later = log.read()
    f"{len(later)} events"
    return (later,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise: a filter

    A dashboard shows prices that expire. It wants the publications of prices which live for a limited time
    only, and no callbacks. Write a filter over attributes, as a dictionary, in place of `None`. The attribute
    `ttlstate` is `infinite`, `valid_for` or `timed_out`; `subject` is the name of the key. Combine parts with
    `{"all": [...]}`.
    """)
    return


@app.cell
def _():
    answer = None
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "Three conditions must hold together: the type ends in .published, the subject begins with price/, and the "
        "time to live is limited.",
        {
            "all": [
                {"suffix": {"type": ".published"}},
                {"prefix": {"subject": "price/"}},
                {"exact": {"ttlstate": "valid_for"}},
            ]
        },
        "It names no single price, so it also selects prices that do not exist yet.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(answer, later):
    wanted = {it.seq for it in later if it.namespace == "io.relaycast.data.published" and it.subject == "price/ksm"}

    def check(written: object) -> Verdict:
        if not isinstance(written, dict | list):
            return Verdict(False, "The answer is a dictionary with one dialect, such as exact, prefix, suffix or all.")
        try:
            selects = compile_filter(written)
        except ValueError as error:
            return Verdict(False, f"That is no filter: {error}.")
        found = {it.seq for it in later if selects(attributes_of(it))}
        if found - wanted:
            example = next(it for it in later if it.seq in found - wanted)
            return Verdict(
                False,
                f"The filter chooses {len(found - wanted)} events that the dashboard does not want, such as "
                f"{example.text_id}: {example.namespace}, subject {example.subject or 'none'}.",
            )
        if wanted - found:
            return Verdict(False, f"The filter misses {len(wanted - found)} of {len(wanted)} events.")
        # The same filter has to hold for a feed that was not there when it was written.
        sample = {"type": "io.relaycast.data.published", "ttlstate": "valid_for", "publisher": 2002}
        if not selects({**sample, "subject": "price/new"}):
            return Verdict(False, "It fits these events. But a new price that expires would not be chosen.")
        if selects({**sample, "subject": "weather/lisbon"}):
            return Verdict(False, "It fits these events. But if the weather expired, it would be chosen, too.")
        return Verdict(True, f"It chooses {len(found)} of {len(later)} events, and will choose prices yet to come.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What was before: history

    A subscriber that connects late asks for the past. Nothing is stored for it: its history is **derived** from the
    log, as all events whose topic matches its pattern. The query of WAMP has a limit, a direction, and bounds by time
    or by publication. The newest three prices, and then the three before them, from where the first page ended:
    """)
    return


@app.cell
def _(later, log):
    rules = HistoryRules([HistoryRule(TopicPattern("io.relaycast.", Match.PREFIX))])
    history = EventHistory(log, rules)
    prices = TopicPattern("io.relaycast.data.published.p2000")

    def page(**bounds: object) -> list[rg.EventRecord]:
        query = HistoryQuery.of([1], {"limit": 3, "reverse": True, **bounds})
        return history.page(prices, query, authid="anna", authrole="user", most_events=100).records

    last_price = [it for it in later if prices.matches(it.topic)][-1]
    newest = page(until_publication=last_price.pub_id)
    before = page(before_publication=newest[-1].pub_id)
    Table(
        ("page", "id", "subject", "value"),
        [
            (number, it.text_id, it.subject, dict(it.data.content)["value"].content.decode())
            for number, records_of_page in enumerate((newest, before), start=1)
            for it in records_of_page
        ],
    )
    return before, newest


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Pages by publication never skip or repeat an event, however many are published meanwhile. Pages by time would:
    several events of a block have the same time, and a page may end between them.

    ## Believing nothing but a root

    An event comes from a gateway, and why should anybody believe a gateway? Because of chapter 3. On request
    `data.published` carries the **proof** of its value: the nodes from the block's state root to the value. A consumer
    takes the root from elsewhere, such as its own node, and needs to trust nobody.
    """)
    return


@app.cell
def _(clock, feed, later, live, log, net):
    feed.proofs = True
    live(net, clock, log, blocks=1)
    proven = log.read(after=later[-1].seq, namespaces=["io.relaycast.data.published"])[-1]
    told = dict(proven.data.content)
    trusted_root = net.chains.relay_chain.head.header.state_root

    def value_in(nodes: Sequence[bytes], root: bytes) -> bytes:
        """Return the value that the nodes prove against the root."""
        key = told["key"].content
        child = rp.derive_child_info(told["publisher"].content)
        entry = rt.StorageProof(nodes).verify_child(root, child, [key])[key]
        assert entry is not None
        return rp.PublishedEntry.decode(entry).value

    nodes = [node.content for node in told["proof"].content]
    assert value_in(nodes, trusted_root) == told["value"].content
    forged = [node.replace(told["value"].content, b"99.99") for node in nodes]
    try:
        value_in(forged, trusted_root)
        outcome = "believed"
    except rt.ProofError as error:
        outcome = f"{type(error).__name__}: not believed"
    Table(
        ("what the event says", "is"),
        [
            ("subject", proven.subject),
            ("value", told["value"].content.decode()),
            ("nodes of the proof", len(nodes)),
            ("proven against the root of a node of one's own", value_in(nodes, trusted_root).decode()),
            ("with a value that the gateway made up", outcome),
        ],
    )
    return forged, outcome, proven


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Forgetting: retention

    A log that keeps everything grows for ever. **Retention** drops the oldest events: those beyond a count, an age, or
    a number of bytes. What goes is always a whole beginning. Numbers are never used again, so that a cursor stays
    valid: a reader whose cursor points to dropped events continues with the oldest event that is left.

    Here a second gateway hears the same blocks, but keeps the newest 24 events only. A consumer has handled everything
    up to the event `S` (number 25), and then it stops for a while:
    """)
    return


@app.cell
def _(key_names, live, publishing_network):
    short_clock = rg.VirtualClock()
    short_gateway = Gateway.open(clock=short_clock, retention=Retention(count=24))
    short_net = publishing_network()
    short_gateway.follow(short_net.chains, "lesson", key_names=lambda: key_names(short_net))
    short = short_gateway.log
    everything: dict[int, rg.EventRecord] = {}
    for _ in range(6):
        live(short_net, short_clock, short, blocks=1)
        everything |= {it.seq: it for it in short.read()}
    cursor = 25
    Table(
        ("what", "is"),
        [
            ("events so far", short.last_seq),
            ("the oldest event that is kept", short.history_start),
            ("the consumer has handled up to", cursor),
        ],
    )
    return cursor, everything, short


@app.cell(hide_code=True)
def _(cursor, draw_log, everything, short):
    draw_log(
        list(everything.values()),
        history_start=short.history_start,
        cursors={cursor: "cursor", short.history_start: "oldest"},
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise: coming back

    The consumer comes back and reads on after its cursor: `log.read(after=25)`. How many events does it get now, and
    how many are lost to it for good? Put both numbers in place of `None`, as `(gets, lost)`.
    """)
    return


@app.cell
def _():
    answer_2 = None
    return (answer_2,)


@app.cell(hide_code=True)
def _():
    aid_2 = Aid(
        "The log keeps the newest events. Compare the oldest one that is kept with the consumer's cursor, 25.",
        (24, 13),
        "24 events are kept behind the cursor. The 13 between the cursor and the oldest kept event are gone.",
    )
    aid_2
    return (aid_2,)


@app.cell(hide_code=True)
def _(answer_2, cursor, short):
    def check_2(given: object) -> Verdict:
        if not (isinstance(given, tuple) and len(given) == 2 and all(type(number) is int for number in given)):
            return Verdict(False, "The answer is a pair of numbers, as (gets, lost).")
        gets, lost = given
        read = short.read(after=cursor)
        if gets != len(read):
            return Verdict(
                False,
                f"The consumer does not get {gets:,}. It begins with the oldest event that is kept, or right after its "
                "cursor: whichever comes later.",
            )
        if lost != short.last_seq - cursor - len(read):
            return Verdict(False, "The first number is right. Lost are those after the cursor that are not kept.")
        return Verdict(True, "Events that it had handled before do not count: it needs them no more.")

    verdict_2 = check_2(answer_2)
    verdict_2
    return check_2, verdict_2


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Playing it again: replay

    A consumer that forgot its cursor, or was changed and wants to handle everything anew, reads from the beginning: a
    **replay**. What it gets is equal to what it got live, byte for byte, since there is one record of each event. It
    has to be: the ids are how a consumer tells an event it has seen from one that it has not.
    """)
    return


@app.cell
def _(everything, short):
    replayed: list[rg.EventRecord] = []
    position = 0
    while records_read := short.read(after=position, limit=10):
        replayed += records_read
        position = records_read[-1].seq
    assert replayed == [everything[it.seq] for it in replayed]
    Table(
        ("a replay in pages of ten", "is"),
        [
            ("first event", replayed[0].text_id),
            ("last event", replayed[-1].text_id),
            ("events", len(replayed)),
            ("equal to what came live", replayed == [everything[it.seq] for it in replayed]),
        ],
    )
    return (replayed,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    That is publish-subscribe as a whole: tries that prove, a message that publishes, blocks that believe nothing but a
    root, a budget with a cursor, and a log that carries all of it to the rest of the world. [One log, four
    faces](../concepts/one-log-four-faces.md) says what each protocol makes of a record; the guides show how to measure
    your own design, and how to connect your own systems. Chapter 8 opens the one box that is still closed: what runs
    inside of a parachain.
    """)
    return


if __name__ == "__main__":
    app.run()
