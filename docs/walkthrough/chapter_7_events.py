"""Walkthrough, chapter 7: events, history and replay."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="7. Events, history, replay", width="medium")

with app.setup:
    from collections.abc import Sequence
    from functools import partial

    import marimo as mo

    import relaycast_gateway as rg
    import relaycast_pallets as rp
    import relaycast_trie as rt
    from relaycast_gateway.cloudevents import attributes_of, compile_filter
    from relaycast_gateway.gateway import Gateway
    from relaycast_gateway.icrc import candy_path
    from relaycast_gateway.log import Retention
    from relaycast_gateway.matching import TopicPattern

    import event_scene as scene
    from lesson import Aid, Table


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 7. Events, history, replay

    Until now all readers were parachains. Most consumers of published values are not: they are dashboards, indexers,
    webhooks, programs on other chains. They want to hear what happens, and what happened while they were away. For them
    relaycast's *gateway* keeps an **event log**: everything that happens on the chains, once, in one order. (`rg` is
    the package of the gateway.)

    Parachain 2000 publishes two prices in every block; that of `ksm` lives for four blocks. Parachain 2001 publishes
    the weather, and 3000 reads the prices. A gateway listens to the chains. Its clock is set by hand here: the gateway
    hears of each block 300 milliseconds after the time of the block. (`scene` belongs to this course:
    `publishing_network` makes the chains, and `live` publishes and lets blocks pass.)
    """)
    return


@app.cell
def _():
    clock = rg.VirtualClock()
    gateway = Gateway.open(clock=clock)
    net = scene.publishing_network()
    feed = gateway.follow(net.chains, "lesson", key_names=lambda: scene.key_names(net))
    scene.live(net, clock, gateway.log, blocks=3)
    log = gateway.log
    records = log.read()
    scene.events_table(records)
    return clock, feed, log, net, records


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The *namespace* says what kind of event it is. `data.published` is a publication; `subscriber.updated` is a
    *callback*, one value delivered to the reader. The *subject* is the name of the key.

    The numbers have gaps because the table leaves out other events: blocks, messages, new publishers. The log itself
    has no gaps: `seq` counts 1, 2, 3, and it is the **only** order. Times give no order, as all events of a block share
    one.

    The *id* is a number, too, and here it equals `seq`. As text it is written in Crockford's Base32: 32 digits, without
    the letters I, L, O and U, which people misread. After `9` comes `A`, after `Z` comes `10`. A consumer remembers ids
    to know what it has already seen. It remembers the last `seq`, its **cursor**, to know where to resume.

    Here is each event as a cell, in the order of the log. Pink is a publication, green a callback:
    """)
    return


@app.cell(hide_code=True)
def _(records):
    scene.draw_log(records)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## One event, looked at closely

    An event says more than its table row: it has headers, and a tree of values, its *data*. From these the gateway
    derives what it sends in each protocol. One of them is *CloudEvents*, a form of messages that event platforms share.
    These are the attributes of one event as a CloudEvent. (`previd` is the event before it of the same type.)
    """)
    return


@app.cell
def _(records):
    first = next(it for it in records if it.namespace.endswith(".published") and it.subject == "price/ksm")
    Table(("attribute", "value"), [(name, str(value)) for name, value in attributes_of(first).items()])
    return (first,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Choosing events

    No consumer wants everything. A **filter** is a small expression that is true for the events one wants. There are
    three languages, since there are three kinds of consumers:

    - A filter of CloudEvents looks at *attributes*: `{"prefix": {"subject": "price/"}}` is true if the subject begins
      with `price/`. There are also `suffix` (ends with) and `exact` (equals); `all`, `any` and `not` combine filters.
    - WAMP, a protocol for publish-subscribe over WebSocket, looks at the *topic*: the namespace and the publisher, such
      as `io.relaycast.data.published.p2000`.
    - ICRC-72, the publish-subscribe of programs on the Internet Computer, looks into the *data*: `publisher == 2000`.

    Three ways to say "what parachain 2000 published", the third with one condition more:
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
    The third one chooses one event fewer. `price/dot` was published twice: once when the network was made, and once for
    the first block. Both messages reached the relay chain in block 2. There the second value **superseded** the first
    one, so the first one is in no block's state. Its event says `superseded`, and has neither value nor proof.

    Three more blocks, so that there is more to choose from:
    """)
    return


@app.cell
def _(clock, log, net):
    scene.live(net, clock, log, blocks=3)
    later = log.read()
    f"{len(later)} events"
    return (later,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise: a filter

    A dashboard shows prices that expire. It wants all publications of prices with a limited time to live, also of
    prices that do not exist yet, and it wants no callbacks. Write a filter over attributes, as a dictionary, in place
    of `None`. The attribute `ttlstate` is `infinite`, or `valid_for` if the time to live is limited, or `timed_out` if
    it has passed. Combine conditions with `{"all": [...]}`.
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
    check = partial(scene.check_filter, events=later)
    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What was before: history

    A subscriber that connects late asks for the past. The gateway stores nothing for it: its history is **derived**
    from the log, as all events whose topic matches its pattern. A WAMP client asks with a limit, a direction, and
    bounds by time or by publication. Here are the newest three publications of 2000, and then the three before them:
    """)
    return


@app.cell
def _(later, log):
    prices = TopicPattern("io.relaycast.data.published.p2000")
    last_price = [it for it in later if prices.matches(it.topic)][-1]
    newest = scene.history_page(log, prices, until_publication=last_price.pub_id)
    before = scene.history_page(log, prices, before_publication=newest[-1].pub_id)
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
    Pages by publication never skip or repeat an event, however many are published meanwhile. Pages by time would, as
    all events of a block have the same time, and a page may end between two of them.

    ## Believing nothing but a root

    An event comes from a gateway, and why should anybody believe a gateway? Nobody has to, thanks to chapter 3. On
    request `data.published` carries the **proof** of its value: the trie nodes from the block's state root to the
    value. A consumer takes the root from elsewhere, such as a computer of its own that follows the relay chain.
    """)
    return


@app.cell
def _(clock, feed, later, log, net):
    feed.proofs = True
    scene.live(net, clock, log, blocks=1)
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
            ("proven against a root of one's own", value_in(nodes, trusted_root).decode()),
            ("with a value that the gateway made up", outcome),
        ],
    )
    return forged, outcome, proven


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Forgetting: retention

    A log that keeps everything grows for ever. **Retention** drops the oldest events: those beyond a count, an age, or
    a number of bytes. It drops from the beginning only, and numbers are never used again. So a cursor stays valid: a
    consumer whose cursor points to dropped events continues with the oldest event that is left.

    Here a second gateway hears the same blocks, but keeps only the newest 24 events. A consumer has handled everything
    up to the event `S` (number 25), and then it stops for a while:
    """)
    return


@app.cell
def _():
    short, everything = scene.log_of(Retention(count=24), blocks=6)  # the log, and every event that was ever in it
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
def _(cursor, everything, short):
    scene.draw_log(
        list(everything.values()),
        history_start=short.history_start,
        cursors={cursor: "cursor", short.history_start: "oldest"},
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise: coming back

    The consumer comes back and reads on after its cursor: `short.read(after=25)`. How many events does it get now, and
    how many that it has not handled are lost? Put both numbers in place of `None`, as `(gets, lost)`.
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
        "24 events are kept after the cursor. The 13 between the cursor and the oldest kept event are gone.",
    )
    aid_2
    return (aid_2,)


@app.cell(hide_code=True)
def _(answer_2, cursor, short):
    check_2 = partial(scene.check_return, log=short, cursor=cursor)
    verdict_2 = check_2(answer_2)
    verdict_2
    return check_2, verdict_2


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Playing it again: replay

    A consumer that forgot its cursor reads from the beginning: a **replay**. So does one whose program has changed and
    that wants to handle everything again. What it gets is equal to what it got live, byte for byte, since there is one
    record of each event. The ids are equal, too, so a consumer can tell which events it has seen before.
    """)
    return


@app.cell
def _(everything, short):
    replayed: list[rg.EventRecord] = []
    position = 0
    while records_read := short.read(after=position, limit=10):
        replayed += records_read
        position = records_read[-1].seq
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
    root, a budget with a cursor, and a log for everybody else. On the site, [One log, four
    faces](../concepts/one-log-four-faces.md) says what each protocol makes of a record. [Push events to your
    systems](../guides/events.md) shows how to connect your own. Chapter 8 is about what runs inside a parachain.
    """)
    return


if __name__ == "__main__":
    app.run()
