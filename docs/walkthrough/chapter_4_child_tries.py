"""Walkthrough, chapter 4: child tries and Publish."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="4. Child tries and Publish")

with app.setup:
    import marimo as mo

    import relaycast_pallets as rp
    import relaycast_trie as rt
    import relaycast_xcm as rx

    from lesson import Table, Verdict, bytes_with_meaning
    from trie_pictures import draw_trie


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 4. Child tries and Publish

    Polkadot is many chains. The *relay chain* holds them together; *parachains*, each with a number, the *para id*, do
    the work. Every parachain can see the relay chain's state root, and therefore check proofs of the relay chain's
    state. That makes the relay chain a good place for notices: what one parachain writes there, all others can read,
    with proof. That is **publish-subscribe**, pub-sub for short, as RFC-0160 proposes it.

    In this chapter parachain 2000, an oracle, publishes two prices. First, a relay chain with nothing on it but the
    *broadcaster*, the part (a *pallet*, in Polkadot's word) that receives publications:
    """)
    return


@app.cell
def _():
    relay = rp.State({b"block": b"100", b"slot": b"7100"})
    system = rp.System(relay)
    system.initialize(100)
    broadcaster = rp.Broadcaster(system)
    root_before = relay.commit()
    draw_trie(relay.db, root_before)
    return broadcaster, relay, root_before, system


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Two keys stand for the millions of a real relay chain. This is the chain's *top trie*.

    ## The message

    Parachains speak to the relay chain in *XCM*, messages made of instructions. `Publish` is such an instruction: a key
    of 32 bytes, a value, and a time to live in blocks. These are all its bytes. (What stands before `Publish` says
    that this is a message of XCM version 5 with one instruction.)
    """)
    return


@app.cell
def _():
    dot, ksm = rt.blake2_256(b"price/dot"), rt.blake2_256(b"price/ksm")
    message = [rx.Publish(dot, b"7.31", ttl=0)]
    annotation = rx.annotate(rx.encode_versioned_xcm(message))
    bytes_with_meaning((span.data, span.meaning.split(" = 0x")[0]) for span in annotation.spans)
    return dot, ksm, message


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Who may publish

    The message goes to the relay chain's XCM *executor*. Before that runs anything, a *barrier* looks at the whole
    message: `AllowPublishFrom` lets messages pass that consist of a few `Publish` and nothing else. Then the
    broadcaster has its own rules. Ours refuses, because parachain 2000 is not registered:
    """)
    return


@app.cell
def _(broadcaster, message, relay):
    executor = rx.XcmExecutor(
        rx.AllowPublishFrom(rx.OnlyParachains()),
        broadcast=rx.ParachainBroadcastAdapter(rx.OnlyParachains(), broadcaster),
    )
    oracle = rx.Location.parachain(2000)
    refused = executor.prepare_and_execute(oracle, message)
    assert isinstance(refused, rx.Incomplete)
    unchanged = relay.commit()
    Table(
        ("what happened", "why"),
        [
            (type(refused.error.error).__name__, str(refused.error.cause)),
            ("the state root", f"0x{unchanged.hex()[:16]}…, as before: a refused call leaves no trace"),
        ],
    )
    return executor, oracle


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Somebody registers it and puts down a deposit; whoever wants the relay chain to keep data has to. (Parachains
    with an id below 2000 are *system parachains* and need not.) Now the same message, and one more, pass:
    """)
    return


@app.cell
def _(broadcaster, executor, ksm, message, oracle, relay, root_before, system):
    assert relay.root == root_before
    manager = bytes(32)
    broadcaster.balances.mint(manager, 2 * broadcaster.config.publisher_deposit)
    broadcaster.register_publisher(rp.Origin.signed(manager), rx.ParaId(2000))
    outcomes = [
        executor.prepare_and_execute(oracle, message),
        executor.prepare_and_execute(oracle, [rx.Publish(ksm, b"31.8", ttl=50)]),
    ]
    root = relay.commit()
    told = [event for event in system.events if isinstance(event, rp.DataPublished)]
    Table(
        ("outcome", "event"),
        [
            (type(outcome).__name__, f"DataPublished by {event.publisher}, key 0x{event.key.hex()[:8]}…")
            for outcome, event in zip(outcomes, told, strict=True)
        ],
    )
    return (root,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## A trie inside the trie

    Where did the two prices go? Not next to the relay chain's own keys: every publisher has a trie of its own, a
    **child trie**. The top trie has one entry for it, whose value is the *root* of the child trie: 32 bytes. This
    way a publisher can own thousands of keys, and the rest of the relay chain sees one value that changes.

    Its entry stands under a key that anybody can work out from the para id:
    """)
    return


@app.cell
def _():
    child = rp.derive_child_info(2000)
    place = child.prefixed_storage_key()
    bytes_with_meaning(
        [
            (place[:23], "“:child_storage:default:”, what all child tries have in front"),
            (place[23:29], "“pubsub”"),
            (place[29:], "2000 as four bytes, little-endian: 0xd0 + 0x07 times 256"),
        ]
    )
    return child, place


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Here is the child trie, drawn from its root as the top trie names it. The values are *entries*, as in chapter 2:
    `10 37 2e 33 31` is the price `7.31` behind its length; time to live and block follow.
    """)
    return


@app.cell
def _(place, relay):
    child_root = relay.get(place)
    assert child_root is not None
    draw_trie(relay.db, child_root)
    return (child_root,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    So a proof of a published price has two parts: the way through the top trie to the child's root, and the way
    through the child trie to the price. It is still one set of nodes, checked against one root, the relay chain's:
    """)
    return


@app.cell
def _(child, child_root, dot, relay, root):
    both = relay.prove_child_read(root, child, [dot])
    read = both.verify_child(root, child, [dot], strict=True)[dot]
    assert read is not None
    below = rt.StorageProof.generate(relay.db, child_root, [dot])
    entry = rp.PublishedEntry.decode(read)
    Table(
        ("part of the proof", "nodes", "bytes"),
        [
            ("top trie", len(both) - len(below), both.proof_bytes - below.proof_bytes),
            ("child trie", len(below), below.proof_bytes),
            (f"what it proves: {entry.value.decode()}, for ever, of block {entry.when_inserted}", "", ""),
        ],
    )
    return (both,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Here is the first part, the top trie as the proof shows it. Most of the relay chain is grey, hashes only; among it
    what the registration wrote (the manager, the deposit, the bytes that 2000 has stored). The yellow leaf holds
    the child's root.
    """)
    return


@app.cell
def _(both, child_root, root):
    by_hash = both.by_hash()
    holds_child = {node_hash for node_hash, node in by_hash.items() if child_root in node}
    draw_trie(by_hash, root, marked=holds_child)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## When time is up

    `price/ksm` was published with a time to live of 50 blocks, at block 100. From block 150 on it counts as expired,
    and the broadcaster removes it when a block has some time left (`on_idle`). That changes the child's root:
    """)
    return


@app.cell
def _(broadcaster, child_root, ksm, place, relay, root, system):
    assert relay.root == root
    story = [("100", "yes", f"0x{child_root.hex()[:16]}…")]
    for block in (149, 150):
        system.initialize(block)
        broadcaster.on_idle(rx.Weight.MAX)
        relay.commit()
        there = broadcaster.storage.entry(rx.ParaId(2000), ksm) is not None
        story.append((str(block), "yes" if there else "no", f"0x{(relay.get(place) or b'').hex()[:16]}…"))
    Table(("block", "price/ksm is there", "root of the child trie"), story)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise: where does 2001 publish?

    You run a light client and want to watch parachain **2001**. Under which key of the top trie does the relay chain
    keep the root of its child trie? Write the key as Python bytes (`b"..."`, with `\x..` for bytes that are no letters)
    or put it together with `+`.
    """)
    return


@app.cell
def _():
    answer = b""
    return (answer,)


@app.cell(hide_code=True)
def _(answer):
    def check(key: object) -> Verdict:
        if not isinstance(key, bytes):
            return Verdict(False, f"A key is bytes; this is of the type {type(key).__name__}.")
        wanted = rp.derive_child_info(2001).prefixed_storage_key()
        if not key.startswith(rt.CHILD_STORAGE_PREFIX):
            return Verdict(
                False, "In the top trie the keys of all child tries begin in the same way; this one does not."
            )
        name = key[len(rt.CHILD_STORAGE_PREFIX) :]
        if not name.startswith(b"pubsub"):
            return Verdict(False, "The beginning is right. What comes first in the name of every publisher's trie?")
        number = name[len(b"pubsub") :]
        if len(number) != 4:
            return Verdict(False, f"The words are right. The para id takes four bytes; here it takes {len(number)}.")
        if key != wanted:
            read = int.from_bytes(number, "little")
            return Verdict(
                False, f"Nearly. Four bytes are right, but read with the lowest byte first they are {read:,}."
            )
        return Verdict(True, "Whoever has a relay chain's root and a proof can now read all that 2001 publishes.")

    verdict = check(answer)
    verdict
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The data is on the relay chain, and provable. In chapter 5 another parachain subscribes to it, through a middleman
    who may lie.
    """)
    return


if __name__ == "__main__":
    app.run()
