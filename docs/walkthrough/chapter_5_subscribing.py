"""Walkthrough, chapter 5: subscribing, and the lying collator."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="5. Subscribing and the lying collator", width="medium")

with app.setup:
    from dataclasses import replace

    import marimo as mo

    import relaycast as rc
    import relaycast_collator as rn
    import relaycast_pallets as rp
    import relaycast_trie as rt
    import relaycast_xcm as rx

    from lesson import Aid, Table, Verdict
    from trie_pictures import draw_trie


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 5. Subscribing and the lying collator

    Parachain 3000, an exchange, wants two of the four prices that parachain 2000 publishes. Three parties matter:

    - The **relay chain** has the prices, as you saw in chapter 4. Its state root is known to everyone.
    - The **collator** of parachain 3000 puts its blocks together. It is an ordinary computer that somebody runs. It
      fetches a proof from the relay chain and hands it to the block. Nobody trusts it.
    - The **block** of parachain 3000 is executed by all who check it. While it runs, it sees the relay chain's state
      root and what the collator hands over, and nothing else. When something is wrong it *panics*: it stops, and the
      block is invalid.

    `rc.Network` has all of that, with one clock. A value sent in block 1 is on the relay chain in block 2, and with the
    subscriber in block 3.
    """)
    return


@app.cell
def _():
    prices = {"price/dot": b"7.31", "price/ksm": b"31.8", "price/eth": b"3316.4", "price/btc": b"97211.5"}

    def network() -> tuple[rc.Network, rc.Publisher, rc.Reader]:
        net = rc.Network(seed=5)
        oracle = net.publisher(2000)
        feeds = oracle.publish_many(prices)
        return net, oracle, net.subscriber(3000, keys=feeds[:2])

    return (network,)


@app.cell
def _(network):
    net, oracle, exchange = network()
    story = []
    for block in range(1, 11):
        sent = "the four prices" if block == 1 else ""
        if block == 5:
            sent = "a new price/dot"
            oracle.publish("price/dot", b"7.42")
        if block == 8:
            sent = "a new price/btc"
            oracle.publish("price/btc", b"96004.9")
        (record,) = net.ledger.step()
        pubsub = record.proof_bytes - record.static_bytes
        story.append((block, sent, record.static_bytes, pubsub, len(record.deliveries)))
    Table(("block", "2000 sends", "always proven, bytes", "for pub-sub, bytes", "values delivered"), story)
    return (exchange,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Every parachain block proves a few things about the relay chain anyway, such as its clock, or which block of the
    parachain it saw last. That is the third column; it grows at first because the relay chain's state does. Look at the
    fourth:

    - In block 3 both prices arrive for the first time, and with them the nodes on their paths.
    - In block 4 nothing changed. The subscriber remembers the root of the oracle's child trie, and the relay chain has
      the same root: nothing more has to be shown. (The leaf that holds this root has 67 bytes. In this network it is
      among what is always proven, because it also proves that another key is absent. In most networks these 67 bytes
      come on top.)
    - In block 7 one price is new, and a smaller proof is enough. The subscriber has kept the nodes that it saw, in a
      *node cache*, and needs only those that changed.
    - In block 10 a price has changed to which 3000 does **not** subscribe. The root of the child trie is another one,
      so the subscriber has to look. The proof shows one changed branch. In it the hashes on the subscriber's own paths
      are as before: nothing to deliver.

    Subscribers receive what *changed*, each value once. What the exchange has in the end:
    """)
    return


@app.cell
def _(exchange):
    Table(("feed", "last value"), [(repr(feed), exchange[feed].decode()) for feed in exchange])
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## One block in slow motion

    Let us stop the clock right before block 7, when the new `price/dot` is on the relay chain and the exchange has
    not seen it. This is the oracle's child trie at that moment. Yellow is what changed with the new price. (`rn` is
    relaycast's package for chains and the computers that build their blocks.)
    """)
    return


@app.cell
def _(network):
    def moment() -> tuple[rc.Network, rn.Collator, rn.Collation]:
        """Return a network before block 7, and what its honest collator would hand over."""
        net, oracle, _ = network()
        net.run(blocks=4)
        oracle.publish("price/dot", b"7.42")
        net.run(blocks=2)
        collator = net.chains.collators[rx.ParaId(3000)]
        return net, collator, collator.collate(net.chains.relay_chain.head)

    return (moment,)


@app.cell
def _(moment):
    relay = moment()[0].chains.relay_chain
    place = rp.derive_child_info(2000).prefixed_storage_key()
    blocks = list(relay.blocks)[-2:]
    roots = [relay.prove_read(block, [place]).verify(block.state_root, [place])[place] for block in blocks]
    assert roots[0] is not None
    assert roots[1] is not None
    old = {reference for _, reference, _ in rt.TrieDB(relay.state.db, roots[0]).nodes()}
    new = {reference for _, reference, _ in rt.TrieDB(relay.state.db, roots[1]).nodes()}
    draw_trie(relay.state.db, roots[1], marked=new - old)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The collator first *collects* a proof of everything that 3000 subscribes to. Then it **prunes**: it runs the same
    algorithm that the block will run, and drops what the algorithm did not read. What is left goes into the block, as
    an *inherent*: data that the block's author adds. The block runs the algorithm again to **verify**. As both run the
    same code, they read the same nodes.
    """)
    return


@app.cell
def _(moment):
    _, _, honest = moment()
    relay_reads = [read for read in honest.pruning.reads if read.source.is_relay]
    Table(
        ("", "nodes", "bytes"),
        [
            ("collected", len(honest.collected), honest.collected.proof_bytes),
            ("handed over, after pruning", len(honest.inherent.relay_chain_state), honest.inherent.proof_bytes),
            ("of that for pub-sub", len(relay_reads), sum(read.size for read in relay_reads)),
        ],
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Pruning dropped one leaf of 48 bytes, that of `price/ksm`: its hash in the branch is as before, so nobody reads it.

    ## What the block demands

    The block believes the relay chain's root, and nothing that the collator says. It demands three things:

    1. What it needs must be there, found by its hash. So nobody can forge a value (chapter 3).
    2. **Every node of the proof must be used.** Otherwise a collator could fill blocks with rubbish, and all who check
       them would have to load it.
    3. **Nothing may be missing that would have fitted.** Otherwise a collator could hide a price that it does not like,
       and say that there was no room. It may leave something out only if the block's *budget* is spent, the bytes that
       it may use for pub-sub; chapter 6 is about that.

    A block that panics says why:

    | the reason | means |
    |---|---|
    | `RootMismatch` | no node has the hash of the relay chain's root: the walk cannot even begin |
    | `MissingNode` | one of the things that are *always* proven is not |
    | `DuplicateNode` | a node was handed over more than once |
    | `UnusedNodes` | a node was handed over that nothing needs |
    | `IncompleteBelowLimit` | the subscriber's data ends although there is budget left |

    ## A collator that lies

    In relaycast a liar is a function: it gets what an honest collator hands over, and returns something else. Here are
    two lies. The first hides the new price; the second adds a node that nothing needs.
    """)
    return


@app.cell
def _(moment):
    def said_to(lie: rn.Tamper | None) -> str:
        """Return why the block panics when it is lied to, or what it delivers."""
        _, collator, collation = moment()
        collator.tamper = lie
        try:
            block = collator.build(collation)
        except rp.Panic as panic:
            return type(panic.cause).__name__
        return f"valid, delivers {[entry.value.decode() for _, _, entry in block.updates]}"

    def hide(inherent: rp.ParachainInherentData) -> rp.ParachainInherentData:
        kept = tuple(node for node in inherent.relay_chain_state if b"7.42" not in node)
        return replace(inherent, relay_chain_state=kept)

    def pad(inherent: rp.ParachainInherentData) -> rp.ParachainInherentData:
        return replace(inherent, relay_chain_state=(*inherent.relay_chain_state, b"rubbish"))

    Table(
        ("the collator", "the block"),
        [("is honest", said_to(None)), ("hides the new price", said_to(hide)), ("pads the proof", said_to(pad))],
    )
    return (said_to,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    A panic leaves no trace in the parachain's state, and another collator builds the block instead. So a liar can waste
    time, but cannot make the exchange accept a wrong value.

    ## Exercise: what does the block say?

    Three more lies. For each, predict the reason of the panic. Think about what the block does, in this order:

    1. It refuses a proof in which a node comes twice.
    2. It walks from the root to what is always proven.
    3. It runs the algorithm, which stops where something is missing.
    4. It checks the second demand, and last the third.

    These are the lies:

    - `stale`: the collator hands over the honest proof of the block *before*, when the relay chain had another root.
    - `forge`: in the leaf with the new price one digit is changed. The forged leaf comes *in place of* the true one.
    - `stutter`: the collator hands over the honest proof, but one of its nodes comes twice.

    Write a reason from the table above in place of each `?`.
    """)
    return


@app.cell
def _():
    answer = {"stale": "?", "forge": "?", "stutter": "?"}
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "Take the demands in their order. A duplicate is refused before anything is read; a wrong root stops the walk "
        "at its first step; no step looks for a forged node.",
        {"stale": "RootMismatch", "forge": "UnusedNodes", "stutter": "DuplicateNode"},
        "The old proof lacks the new root. The forged leaf has another hash, so no step reads it. A node that comes "
        "twice is refused at once.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(answer, network, said_to):
    def stale(inherent: rp.ParachainInherentData) -> rp.ParachainInherentData:
        net, _, _ = network()
        net.run(blocks=4)
        before = net.chains.collators[rx.ParaId(3000)].collate(net.chains.relay_chain.head)
        return replace(inherent, relay_chain_state=before.inherent.relay_chain_state)

    def forge(inherent: rp.ParachainInherentData) -> rp.ParachainInherentData:
        forged = tuple(node.replace(b"7.42", b"9.42") for node in inherent.relay_chain_state)
        return replace(inherent, relay_chain_state=forged)

    def stutter(inherent: rp.ParachainInherentData) -> rp.ParachainInherentData:
        return replace(inherent, relay_chain_state=(*inherent.relay_chain_state, inherent.relay_chain_state[0]))

    think = {
        "stale": "Which hash does the walk begin with, and does the proof of the block before have such a node?",
        "forge": "A forged leaf has another hash. What is looked for then, and what becomes of the forged one? "
        "Of two demands that are not met, the block names the first.",
        "stutter": "Nothing is missing here, and nothing is foreign.",
    }
    reasons = ("RootMismatch", "MissingNode", "DuplicateNode", "UnusedNodes", "IncompleteBelowLimit")

    def check(foretold: object) -> Verdict:
        if not isinstance(foretold, dict) or foretold.keys() != think.keys():
            return Verdict(False, f"The answer has a reason for each of {', '.join(think)}.")
        for name, reason in foretold.items():
            if reason not in reasons:
                return Verdict(False, f"{name}: {reason!r} is none of the reasons in the table.")
        lies = {"stale": stale, "forge": forge, "stutter": stutter}
        wrong = [name for name, lie in lies.items() if said_to(lie) != foretold[name]]
        if wrong:
            return Verdict(False, f"{3 - len(wrong)} of 3. Not so: {wrong[0]}. {think[wrong[0]]}")
        return Verdict(True, "The three lies were told to a block, and it said what you foretold.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    So far there was always room in the block. In chapter 6 there is too little.
    """)
    return


if __name__ == "__main__":
    app.run()
