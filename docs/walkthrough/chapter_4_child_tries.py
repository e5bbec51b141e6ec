"""Walkthrough, chapter 4: child tries and Publish."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="4. Child tries and Publish")

with app.setup:
    import marimo as mo

    import relaycast_pallets as rp
    import relaycast_trie as rt
    import relaycast_xcm as rx

    from lesson import Aid, Table, Verdict, bytes_with_meaning
    from trie_pictures import draw_trie


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 4. Child tries and Publish

    Polkadot is many chains. *Parachains*, each with a number, the *para id*, do the work. The *relay chain* checks
    their blocks and keeps a state that they share. Every parachain can see the relay chain's state root, and so it can
    check proofs of that state. That makes the relay chain a good place for notices: what one parachain writes there,
    all others can read, with proof. That is **publish-subscribe**, pub-sub for short, as the proposal RFC-0160
    describes it.

    In this chapter parachain 2000 publishes two prices. It is an *oracle*: a chain that brings facts from outside. We
    begin with a relay chain that has nothing but the *broadcaster*, the part that receives publications. (Such a part
    of a chain's program is called a *pallet*.)
    """)
    return


@app.cell
def _():
    def new_relay() -> rp.Broadcaster:
        """Return the broadcaster of a relay chain that is at block 100."""
        system = rp.System(rp.State({b"block": b"100", b"slot": b"7100"}))
        system.initialize(100)
        return rp.Broadcaster(system)

    empty = new_relay().system.state
    draw_trie(empty.db, empty.commit())
    return (new_relay,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    This is the chain's *top trie*. The keys `block` and `slot` stand for the millions of a real relay chain. The branch
    on the left is what the chain notes about itself: the number of the block, and the hash of the block before. (That
    hash is all zeros here.)

    ## The message

    Parachains send the relay chain messages in *XCM*, a format in which a message is a list of instructions. `Publish`
    is such an instruction. It has a key of 32 bytes, a value, and a time to live in blocks; 0 means for ever. (`rx` is
    relaycast's package for XCM.)

    These are all bytes of the message. The first two say that it is of XCM version 5 and has one instruction; the count
    is a SCALE length, 1 times 4. On the right are the types in Rust's words. `[u8; 32]` is 32 bytes,
    `BoundedVec<u8, 2048>` is up to 2,048 bytes behind their length, and `u32` is a number of four bytes.
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
    message: `AllowPublishFrom` lets a message pass if it consists of a few `Publish` and nothing else. Then the
    broadcaster has its own rules. Ours refuses, because parachain 2000 is not registered:
    """)
    return


@app.cell
def _(message, new_relay):
    oracle = rx.Location.parachain(2000)

    def executor_of(broadcaster: rp.Broadcaster) -> rx.XcmExecutor:
        handler = rx.ParachainBroadcastAdapter(rx.OnlyParachains(), broadcaster)
        return rx.XcmExecutor(rx.AllowPublishFrom(rx.OnlyParachains()), broadcast=handler)

    strict = new_relay()
    root_before = strict.system.state.commit()
    refused = executor_of(strict).prepare_and_execute(oracle, message)
    assert isinstance(refused, rx.Incomplete)
    root_after = strict.system.state.commit()
    Table(
        ("what happened", "why"),
        [
            (type(refused.error.error).__name__, str(refused.error.cause)),
            ("the state root", "as before" if root_after == root_before else "another one"),
        ],
    )
    return executor_of, oracle


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    A refused call leaves no trace: the state root is as before.

    So somebody registers 2000, and is its *manager* from then on. The manager puts down a deposit, as everybody must
    who wants the relay chain to keep data. (Parachains with an id below 2000 are *system parachains*, and publish
    without registering.) Now the same message passes, and so does a second one with the price of ksm. For each, the
    pallet leaves an *event*, a note in the block about what happened:
    """)
    return


@app.cell
def _(executor_of, ksm, message, new_relay, oracle):
    def with_prices() -> rp.Broadcaster:
        """Return the broadcaster of a relay chain on which 2000 is registered and has published twice."""
        broadcaster: rp.Broadcaster = new_relay()
        manager = bytes(32)
        broadcaster.balances.mint(manager, 2 * broadcaster.config.publisher_deposit)
        broadcaster.register_publisher(rp.Origin.signed(manager), rx.ParaId(2000))
        executor = executor_of(broadcaster)
        for sent in (message, [rx.Publish(ksm, b"31.8", ttl=50)]):
            assert isinstance(executor.prepare_and_execute(oracle, sent), rx.Complete)
        return broadcaster

    relay = with_prices().system
    state = relay.state
    root = state.commit()
    told = [event for event in relay.events if isinstance(event, rp.DataPublished)]
    Table(
        ("event", "publisher", "key"),
        [("DataPublished", str(event.publisher), f"0x{event.key.hex()[:8]}…") for event in told],
    )
    return root, state, with_prices


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## A trie inside the trie

    Where did the two prices go? Every publisher has a trie of its own, a **child trie**. The top trie holds one pair
    for it, whose value is the *root* of the child trie: 32 bytes. So a publisher can own thousands of keys, and in the
    relay chain's own trie only one value changes.

    Anybody can work out the key of that pair from the para id:
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
    Here is the child trie, drawn from the root that the top trie holds. The values are *entries*, as in chapter 2:
    `10 37 2e 33 31` is the price `7.31` behind its length; time to live and block follow.
    """)
    return


@app.cell
def _(place, state):
    child_root = state.get(place)
    assert child_root is not None
    draw_trie(state.db, child_root)
    return (child_root,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    So a proof of a published price has two parts: the way through the top trie to the child's root, and the way
    through the child trie to the price. It is still one set of nodes, checked against one root, the relay chain's:
    """)
    return


@app.cell
def _(child, child_root, dot, root, state):
    both = state.prove_child_read(root, child, [dot])
    read = both.verify_child(root, child, [dot], strict=True)[dot]
    assert read is not None
    below = rt.StorageProof.generate(state.db, child_root, [dot])
    entry = rp.PublishedEntry.decode(read)
    Table(
        ("part of the proof", "nodes", "bytes", "leads to"),
        [
            ("top trie", len(both) - len(below), both.proof_bytes - below.proof_bytes, "the root of the child trie"),
            ("child trie", len(below), below.proof_bytes, f"{entry.value.decode()}, of block {entry.when_inserted}"),
        ],
    )
    return (both,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Here is the first part, the top trie as the proof shows it. Of most of the relay chain the proof has hashes only:
    the grey box. It stands also for what the registration wrote: the manager, the deposit, and how many bytes 2000
    stores. The yellow leaf holds the root of the child trie.
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

    `price/ksm` was published in block 100 with a time to live of 50 blocks. From block 150 on it counts as expired.
    The broadcaster removes it when a block has some time left (`on_idle`). That changes the root of the child trie:
    """)
    return


@app.cell
def _(child_root, ksm, place, with_prices):
    aging = with_prices()
    system = aging.system
    system.state.commit()
    story = [(100, True, f"0x{child_root.hex()[:16]}…")]
    for block in (149, 150):
        system.initialize(block)
        aging.on_idle(rx.Weight.MAX)
        system.state.commit()
        root_then = system.state.get(place) or b""
        is_there = aging.storage.entry(rx.ParaId(2000), ksm) is not None
        story.append((block, is_there, f"0x{root_then.hex()[:16]}…"))
    Table(("block", "price/ksm is there", "root of the child trie"), story)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise: where does 2001 publish?

    Your program watches what parachain **2001** publishes. Under which key of the top trie does the relay chain keep
    the root of the child trie of 2001? Write the key as Python bytes: `b"..."`, with `\x` and two hexadecimal digits
    for each byte that is no letter. You may also put it together from parts with `+`.
    """)
    return


@app.cell
def _():
    answer = b""
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "The key has three parts: what all child tries have in front, the word in the name of every publisher's trie, "
        "and the para id as four bytes, the lowest first.",
        b":child_storage:default:pubsub\xd1\x07\x00\x00",
        "2001 is 0x07d1; with the lowest byte first that is d1 07 00 00.",
    )
    aid
    return (aid,)


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
    The data is on the relay chain, and everybody can check a proof of it. In chapter 5 another parachain subscribes to
    it, through a middleman who may lie.
    """)
    return


if __name__ == "__main__":
    app.run()
