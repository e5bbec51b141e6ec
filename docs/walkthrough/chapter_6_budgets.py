"""Walkthrough, chapter 6: budgets and cursors."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="6. Budgets and cursors", width="medium")

with app.setup:
    from itertools import pairwise

    import marimo as mo

    import relaycast as rc
    import relaycast_ledger as rl
    import relaycast_pallets as rp
    import relaycast_trie as rt
    import relaycast_xcm as rx

    from lesson import Aid, Table, Verdict
    from trie_pictures import Picture, framed


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 6. Budgets and cursors

    A parachain block travels with its *proof of validity*, **PoV**: all that is needed to check the block without the
    state of the parachain. It may have at most 10 MiB, and collators use 85 percent of that, to be safe.

    Pub-sub is last in the queue. Messages from the relay chain and from other parachains come first; pub-sub gets what
    they leave. So its **budget** is different in every block:
    """)
    return


@app.cell
def _():
    mib = 1 << 20
    traffic = {
        "no messages": (),
        "one message of 3 MiB": (bytes(3 * mib),),
        "eight messages of 1 MiB": (bytes(mib),) * 8,
        "nine messages of 1 MiB": (bytes(mib),) * 9,
    }
    shares = []
    for what, messages in traffic.items():
        share = rp.Remaining(85).share_out(rp.PovUsage(max_pov_bytes=10 * mib, downward_messages=messages))
        shares.append((what, share.downward_count, share.pubsub_bytes))
    Table(("the block gets", "messages in full", "bytes left for pub-sub"), shares)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    (A message that does not fit is not lost: it waits for a later block. In its place come its hash and the number of
    the relay block that sent it, 36 bytes.)

    What if the budget is too small? To see that without megabytes, we make a very small network. Parachain 2000
    publishes twelve values of 300 bytes each, and 3000 wants them all. Its blocks have room for 2,500 bytes of pub-sub,
    and that is not enough for twelve times 300. (`rl` is relaycast's ledger, which records what each block cost.)
    """)
    return


@app.cell
def _():
    def tight_network(budget_bytes: int, *, values: int, value_bytes: int) -> tuple[rc.Network, list[rc.Feed]]:
        """Return a network in which 3000 reads everything of 2000, with this budget in every block."""
        net = rc.Network(seed=6)
        news = {f"news/{index}": bytes([index]) * value_bytes for index in range(values)}
        feeds = net.publisher(2000).publish_many(news)
        net.subscriber(3000, keys=feeds, budget=rp.Remaining(percent=100), max_pov_bytes=budget_bytes)
        return net, feeds

    def subscriber_blocks(net: rc.Network, count: int) -> list[rl.BlockRecord]:
        """Let blocks pass and return what became of each block of 3000."""
        return [record for _ in range(count) for record in net.ledger.step()]

    return subscriber_blocks, tight_network


@app.cell
def _(subscriber_blocks, tight_network):
    small, feeds = tight_network(2_500, values=12, value_bytes=300)
    records = subscriber_blocks(small, 6)
    Table(
        ("block", "budget", "bytes used", "values delivered", "the pass", "cursor"),
        [
            (
                record.tick,
                record.budget_bytes,
                record.consumed.proof_size,
                len(record.deliveries),
                "complete" if record.complete else "cut short",
                "" if record.cursor is None else f"key 0x{record.cursor[1].hex()[:6]}…",
            )
            for record in records
        ],
    )
    return feeds, records, small


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    In each block the subscriber makes a *pass*: it goes through its keys in ascending order. Each node and each value
    that it reads takes its bytes from the budget. In block 3 the next read would not fit, and the pass is *cut short*.
    That is no error. The block keeps what it has, and stores the first key that the pass did not reach: the **cursor**.
    The next block begins there.

    In block 6 nothing is new. The 67 bytes are the leaf of the top trie with the root of the child trie, as before.

    One row for each key, in the order of the keys, one column for each block; green is a delivery:
    """)
    return


@app.cell(hide_code=True)
def _(feeds, records):
    def draw_progress(records: list[rl.BlockRecord], feeds: list[rc.Feed]) -> Picture:
        rows = sorted(feeds, key=lambda feed: feed.key)
        drawn = ['<text x="80" y="16">block</text>'] + [
            f'<text x="{150 + 50 * column}" y="16" text-anchor="middle">{record.tick}</text>'
            for column, record in enumerate(records)
        ]
        for row, feed in enumerate(rows):
            top = 26 + 20 * row
            drawn.append(f'<text x="4" y="{top + 14}">{feed.name:8} {feed.key.hex()[:4]}…</text>')
            for column, record in enumerate(records):
                arrived = any(delivery.key == feed.key for delivery in record.deliveries)
                stopped = record.cursor is not None and record.cursor[1] == feed.key
                fill = "#81c784" if arrived else "#fff3cd" if stopped else "#eceff1"
                drawn.append(f'<rect x="{128 + 50 * column}" y="{top}" width="44" height="16" fill="{fill}"/>')
                if stopped:
                    drawn.append(f'<text x="{150 + 50 * column}" y="{top + 12}" text-anchor="middle">cursor</text>')
        return framed("".join(drawn), 134 + 50 * len(records), 30 + 20 * len(rows), "Which keys each block delivers")

    draw_progress(records, feeds)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The collator can hardly cheat here, either. Remember the third demand of chapter 5: *nothing may be missing that
    would have fitted*. The block computes the same budget from the same messages, and runs the same algorithm. Where
    the data ends, the block looks at what is left of the budget. If the largest possible read would still have fitted,
    the block panics: `IncompleteBelowLimit`.

    The largest possible read is a value of 2,048 bytes, which is an entry of 2,058. So a collator can hold back what
    would have gone into the last 2,057 bytes, and no more. Of the megabytes of a real block that is little. Of our
    2,500 bytes it is most, and with a budget below 2,058 bytes the third demand has no effect.

    ## When news comes faster than the budget allows

    Now all twelve values change in every block, for forty blocks: 480 values. What arrives is never old, as a proof is
    always of the newest state. But between two deliveries of a key, the publisher overwrites values that the subscriber
    never sees: they are *conflated*. Thanks to the cursor, every key gets its turn.
    """)
    return


@app.cell
def _(tight_network):
    results = []
    for budget_bytes in (1_250, 1_400, 2_500, 5_000, 10_000):
        busy, busy_feeds = tight_network(budget_bytes, values=12, value_bytes=300)
        times: dict[bytes, list[int]] = {feed.key: [] for feed in busy_feeds}
        for block in range(1, 41):
            busy.publisher(2000).publish_many({f"news/{index}": bytes([index, block]) * 150 for index in range(12)})
            for record in busy.ledger.step():
                for delivery in record.deliveries:
                    times[delivery.key].append(block)
        gaps = [later - earlier for ticks in times.values() for earlier, later in pairwise([*ticks, 41])]
        delivered = sum(map(len, times.values()))
        results.append((budget_bytes, delivered, max(gaps), sum(map(bool, times.values()))))
    Table(("budget", "delivered, of 480", "longest silence about a key, in blocks", "keys served, of 12"), results)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    In the last row nothing is lost: what the last two blocks sent is still on its way, and 12 times 38 is 456.

    The first row is a warning. With 1,250 bytes two of the keys are served once and then never again: their longest
    silence is 34 blocks. Why? To see what changed, the subscriber reads the new nodes on the way to a key *and* the old
    ones, from its node cache. Cached nodes count against the budget as well. This is what each key takes alone: the
    leaf of the top trie (67 bytes), its nodes twice, and its entry.
    """)
    return


@app.cell
def _(feeds, small):
    relay_chain, place = small.chains.relay_chain, rp.derive_child_info(2000).prefixed_storage_key()
    state_root = relay_chain.head.state_root
    child_root = relay_chain.prove_read(relay_chain.head, [place]).verify(state_root, [place])[place] or b""
    ways = []
    for feed in sorted(feeds, key=lambda feed: feed.key):
        proof = rt.StorageProof.generate(relay_chain.state.db, child_root, [feed.key])
        entry, *nodes = sorted(map(len, proof), reverse=True)
        ways.append((feed.name, " + ".join(map(str, nodes)), entry, 67 + 2 * sum(nodes) + entry))
    Table(("key", "nodes on its way, bytes", "entry, bytes", "67, nodes twice, entry"), ways)
    return (ways,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Two keys take 1,251 bytes: one too many.

    A pass that begins at such a key cannot finish it, and skips it. The block says so with an event, `KeyBeyondBudget`,
    and the cursor moves to the next key. This costs the other keys one block in each round, and no more. The skipped
    key gets its turn when a block has room. So a budget has to hold the way to *every single* key; then each of them is
    served.

    ## Exercise: the smallest budget

    A smaller network still: four values of 100 bytes. The table shows what the first block that sees them reads when
    its budget is ample:

    - `relay_top` is the leaf of the top trie that holds the root of the child trie;
    - `relay_node` is a node of the child trie;
    - `relay_value` is a value that stands outside of its node, as in chapter 2.

    (The rest of the way through the top trie costs nothing here. What is always proven has read those nodes already,
    and each node counts once. The node cache is still empty, so there are no old nodes to read.)
    """)
    return


@app.cell
def _(subscriber_blocks, tight_network):
    ample, _ = tight_network(1_000_000, values=4, value_bytes=100)
    subscriber_blocks(ample, 2)
    collator = ample.chains.collators[rx.ParaId(3000)]
    pass_of_block_3 = collator.collate(ample.chains.relay_chain.head).pruning
    Table(
        ("read", "what", "hash", "bytes"),
        [
            (number, read.source.value, f"0x{read.node_hash.hex()[:8]}…", read.size)
            for number, read in enumerate(pass_of_block_3.reads, start=1)
        ],
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    What is the smallest budget, in bytes, with which all four values arrive in that one block? Put the number in place
    of `None`; the check runs the network with it, and with one byte less.
    """)
    return


@app.cell
def _():
    answer = None
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "Every read of the table takes its bytes from the budget, and the pass stops at the first read that does not "
        "fit. How many bytes do all ten reads take?",
        906,
        "The ten reads have 67 + 135 + 4 * (66 + 110) = 906 bytes. With 905 the last read does not fit.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(answer, subscriber_blocks, tight_network):
    def arrived(budget_bytes: int) -> int:
        net, _ = tight_network(budget_bytes, values=4, value_bytes=100)
        return len(subscriber_blocks(net, 3)[-1].deliveries)

    def check(budget_bytes: object) -> Verdict:
        if type(budget_bytes) is not int or not 0 < budget_bytes <= 1_000_000:
            return Verdict(False, "The answer is a number of bytes, at most a million.")
        there = arrived(budget_bytes)
        if there < 4:
            return Verdict(
                False,
                f"With {budget_bytes:,} bytes, {there} of 4 values arrive in that block. "
                "Is everything counted that has to be read on the way to a value?",
            )
        if budget_bytes > 1 and arrived(budget_bytes - 1) == 4:
            return Verdict(False, f"With {budget_bytes:,} bytes all four arrive. But a smaller budget would do.")
        return Verdict(True, "With one byte less, the last value would have come a block later.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    So far all readers were parachains. Chapter 7 is about everybody else. How does a dashboard or a webhook hear of a
    publication, and how does it read what happened before?
    """)
    return


if __name__ == "__main__":
    app.run()
