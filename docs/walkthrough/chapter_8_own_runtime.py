"""Walkthrough, chapter 8: a runtime of one's own."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="8. Your own runtime", width="medium")

with app.setup:
    from collections.abc import Iterable

    import marimo as mo
    import wasmtime

    import relaycast as rc
    import relaycast_collator as rn
    import relaycast_pallets as rp
    import relaycast_trie as rt
    import relaycast_wasm as rw
    import relaycast_xcm as rx
    from relaycast.genesis.chain_spec import ChainSpec

    from lesson import Aid, Table, Verdict, cut, example
    from proof_below import ProofBelow
    from trie_pictures import draw_trie

    COUNTER = example("counter-runtime/counter.wat")
    COUNT = rt.twox_128(b"Counter") + rt.twox_128(b"Count")  # a pallet, and an item of it


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 8. Your own runtime

    So far parachains were modelled: Python that does what a chain does. A real chain has a **runtime**, a program that
    decides what a valid block is and what it changes. It is compiled to *WebAssembly*, instructions for a simple
    machine that every computer can imitate. Its bytes are a value of the chain's state, under the key `:code`: the
    state contains the rules.

    Runtimes are written in Rust and often have more than a megabyte. Ours is a counter that stops at 100, written in
    WebAssembly's text form: `docs/examples/counter-runtime/counter.wat`. One call turns the text into bytes. The state
    holds them, the count 5, and three more pairs, so that its trie has some branches. (A pallet's key begins with a
    hash of the pallet's name, `twox_128`, and a hash of the name of the *storage item*. `rw` is relaycast's package for
    compiled runtimes.)
    """)
    return


@app.cell
def _():
    code = bytes(wasmtime.wat2wasm(COUNTER.read_text()))
    genesis = {b":code": code, COUNT: bytes([5, 0, 0, 0])}
    genesis |= {rt.twox_128(b"System") + rt.twox_128(item): item * 5 for item in (b"Account", b"Number", b"Events")}
    state = rp.State(genesis, state_version=rt.StateVersion.V1)
    runtime = rw.WasmRuntime.load(state.get(b":code") or b"", kept=None)  # kept: where compiled code may be kept
    rows = [("exports", name) for name in sorted(runtime.methods)] + [("imports", name) for name in runtime.imports]
    Table((f"a runtime of {len(code):,} bytes", code[:8].hex(" ") + " …"), rows)
    return code, genesis, runtime, state


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    WebAssembly can compute, and nothing else: it has no files, no clock, no network. Two lists connect it with the
    rest. A *node*, a computer that runs the chain, may call what the runtime **exports**. What it **imports** are
    **host functions**: the node, its *host*, does for it what it cannot do itself. Bytes go in and come out in SCALE.
    The first call asks for the version. Its answer lists the APIs, groups of exports, by the hashes of their names:
    """)
    return


@app.cell
def _(runtime, state):
    cut(
        runtime.call("Core_version", b"", rw.OverlayedChanges(rw.StateBacking(state))).output,
        [
            (1, "a length, times four: 7"), (7, "the name of the specification: counter"),
            (1, "a length, times four: 7"), (7, "the name of the implementation: counter"),
            (4, "version of block authoring: 1"), (4, "version of the specification: 1; each upgrade raises it"),
            (4, "version of the implementation: 1"), (1, "a length, times four: 4 APIs follow"),
            (8, "Core: the first 8 bytes of the hash of this name"), (4, "in version 4"), (8, "Metadata"),
            (4, "in version 2"), (8, "BlockBuilder"), (4, "in version 6"), (8, "KeyToIncludeInRelayProof"),
            (4, "in version 1"), (4, "version of transactions: 1"), (1, "state version: 1, see chapter 2"),
        ],
    )  # fmt: skip
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## It sees storage through its host

    An **extrinsic** is what comes into a block from outside, such as a user's transaction. The counter knows one kind:
    a length, a 1, and four bytes, the number to add. `BlockBuilder_apply_extrinsic` runs it.

    The runtime does not write into the state. The host lays an **overlay** over it. What the runtime writes stays in
    the overlay; what it reads comes from there, or else from the state below. The overlay records both. Here are two
    extrinsics, over one overlay:
    """)
    return


@app.cell
def _(runtime, state):
    def add(number: int) -> bytes:
        return b"\x14\x01" + number.to_bytes(4, "little")

    def count_in(overlay: rw.OverlayedChanges) -> int:
        return int.from_bytes(overlay.get(COUNT) or b"", "little")

    overlay, seen = rw.OverlayedChanges(rw.StateBacking(state)), []
    for extrinsic in (add(40), add(60)):
        said = runtime.call("BlockBuilder_apply_extrinsic", extrinsic, overlay).output
        seen.append((extrinsic, said, len(overlay.reads[None]), len(overlay.changes()[None]), count_in(overlay)))
    assert state.get(COUNT) == bytes([5, 0, 0, 0])
    Table(("extrinsic", "answer", "keys read below", "keys written", "count in the overlay"), seen)
    return add, count_in


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    One key is the count; the other is a list of the block's extrinsics so far. `00 00` means *valid, and done*.
    5 + 40 + 60 is more than 100, so the second answer is `01 00 00`: *not valid*. Yet the overlay has 105: the runtime
    wrote first and checked later. That is allowed. The node that builds a block opens a **transaction** in the overlay
    before each extrinsic, and *rolls it back* if the answer is not valid: what was written since then is gone.

    ### Exercise: what remains

    Begin with a new overlay: the count is 5, the list is empty. Extrinsics that add 40, 60, 50 and 6 go through
    `applied`, in this order. What does the overlay hold in the end? Put two numbers in place of `None`, as
    `(count, extrinsics in the list)`.
    """)
    return


@app.cell
def _(runtime):
    def applied(extrinsic: bytes, overlay: rw.OverlayedChanges) -> bool:
        overlay.start_transaction()
        valid: bool = runtime.call("BlockBuilder_apply_extrinsic", extrinsic, overlay).output[0] == 0
        (overlay.commit_transaction if valid else overlay.roll_back_transaction)()
        return valid

    return (applied,)


@app.cell
def _():
    answer = None
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "The runtime refuses a count beyond 100. Go through the four in their order, and keep the count after each "
        "that is valid.",
        (95, 2),
        "5 + 40 = 45. Adding 60 is refused and rolled back. 45 + 50 = 95. Adding 6 would make 101 and is refused.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(add, answer, applied, count_in, state):
    def check(given: object) -> Verdict:
        if not (isinstance(given, tuple) and len(given) == 2 and all(type(number) is int for number in given)):
            return Verdict(False, "The answer is a pair of numbers, as (count, extrinsics).")
        tried = rw.OverlayedChanges(rw.StateBacking(state))
        included = sum(applied(add(number), tried) for number in (40, 60, 50, 6))
        if given[0] > 100:
            return Verdict(False, "A count beyond the limit is not valid, and so it is rolled back.")
        if given[0] != count_in(tried):
            return Verdict(False, "That is not the count. After an extrinsic that is left out, others may follow.")
        if given[1] != included:
            return Verdict(False, "The count is right. The list is in the overlay, too, and rolled back with it.")
        return Verdict(True, "An extrinsic that is left out leaves nothing behind, under no key.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## A block

    A block is a few calls over one overlay. The first gets a **header**, the summary of a block, with its roots still
    empty. Then come **inherents**: extrinsics that no user sends. The runtime makes them from what the block's author
    knows, such as the time. (Here it is “hello”.) Users' extrinsics follow, and the last call returns the header with
    its roots:
    """)
    return


@app.cell
def _(add, applied, runtime, state):
    def build(overlay: rw.OverlayedChanges, parent: rn.Header, numbers: Iterable[int]) -> tuple[rn.Header, list[bytes]]:
        blank = rn.Header(parent.hash, parent.number + 1, bytes(32), bytes(32))
        runtime.call("Core_initialize_block", blank.encode(), overlay)
        known = b"\x04" + b"sysi1337" + b"\x14hello"  # a list of one: an identifier, and what is known
        made = runtime.call("BlockBuilder_inherent_extrinsics", known, overlay).output  # a list of one, too
        body = [it for it in (made[1:], *map(add, numbers)) if applied(it, overlay)]
        return rn.Header.decode(runtime.call("BlockBuilder_finalize_block", b"", overlay).output), body

    parent, block_overlay = rn.Header(bytes(32), 0, state.root), rw.OverlayedChanges(rw.StateBacking(state))
    header, body = build(block_overlay, parent, (40, 60, 50))
    assert header.state_root == state.root_with(block_overlay.changes()) != state.root
    assert header.extrinsics_root == rn.ordered_root([it[1:] for it in body])
    parts = [(32, "the hash of the parent's header"), (1, "the number, times four: 1"), (32, "the state root")]
    parts += [
        (32, f"the root of a trie of {len(body)} extrinsics"),
        (1, "no digest, the place of the author's signature"),
    ]
    cut(header.encode(), parts)
    return block_overlay, build, header, parent


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The runtime has no trie: it asks its host for both roots. The two `assert` lines compute them without the runtime.

    ## What a validator needs

    *Validators* of the relay chain check the blocks of all parachains, and have the state of none. They need only the
    trie nodes that a block reads or rewrites, its **own proof**. In this picture of the parent's state they are yellow.
    By far the largest value, the runtime, is not yellow. State version 1 keeps it outside of its leaf, and validators
    have the code already. The branch on the left is yellow because two keys of the block lie below it: its header and
    its list of extrinsics. The block wrote both and removed them again.

    A validator runs the block again, over the proof alone. Real runtimes export `validate_block` for that; here we
    build the block once more, without the 60 that was refused. If the header is the same, the block is good. If one
    node is missing, nobody can tell:
    """)
    return


@app.cell
def _(block_overlay, parent, state):
    touched = rt.Recorder()
    state.record(touched, reads=block_overlay.reads, tried=[block_overlay.changes()])
    own_proof = rt.StorageProof(touched.nodes.values())
    draw_trie(state.db, parent.state_root, marked=own_proof.by_hash())
    return (own_proof,)


@app.cell
def _(build, header, own_proof, parent):
    def checked(proof: Iterable[bytes]) -> str:
        try:
            found, _ = build(rw.OverlayedChanges(ProofBelow(proof, parent.state_root)), parent, (40, 50))
        except (rw.WasmError, rt.ProofError) as error:
            return type(error).__name__
        return "the same header" if found == header else "another header"

    less = [(f"all but {node.hex()[:8]}…, {len(node)} bytes", own_proof.nodes - {node}) for node in own_proof]
    checks = [(what, checked(nodes)) for what, nodes in (("all nodes", own_proof.nodes), *less)]
    Table(("the validator has", "and finds"), checks)
    return (checks,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## On the relay chain

    Now the counter becomes parachain 3000 of a network, in which parachain 2000 publishes `price/0`. Each block of the
    counter builds on a block of the relay chain, its *relay parent*. relaycast does what we did by hand, for every
    block, and assigns each node of the own proof to a storage item. A node on the way to several items of one pallet is
    `shared`; a node on the way to several pallets belongs to `trie`:
    """)
    return


@app.cell
def _(add, code, genesis):
    net = rc.Network(seed=8)
    price = net.publisher(2000).publish("price/0", b"7.31")
    counter = net.parachain(3000, wasm=code, genesis=ChainSpec("counter", genesis, {}, rt.StateVersion.V1))
    net.run(blocks=3)
    relay_parent = net.chains.relay_chain.head
    counter.submit(add(40))
    net.run(blocks=1)
    block = counter.blocks[-1]
    assert sum(share.proof_bytes for share in block.shares) == block.own_proof.proof_bytes
    shares = [(it.pallet, it.item, it.reads, it.writes, it.proof_bytes) for it in block.shares]
    Table(("pallet", "item", "keys read", "keys written", "bytes of the own proof"), shares)
    return block, counter, net, price, relay_parent


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The inherent is no longer a “hello”: it has the relay parent's state root and a **relay proof**, nodes of that
    state. Some keys of the relay chain are always proven, such as its clock. Before each block the collator asks the
    runtime which keys it wants besides: `KeyToIncludeInRelayProof_keys_to_prove`. The counter wants the price. The
    `assert` lines find it in the proof, and the table shows the answer of the runtime:
    """)
    return


@app.cell
def _(block, counter, price, relay_parent):
    root_and_limit, proof, _ = block.extrinsics[0].partition(block.relay_proof.encode())
    assert root_and_limit[-36:-4] == relay_parent.state_root
    child = rp.derive_child_info(2000)
    entry = rt.StorageProof.decode(proof).verify_child(relay_parent.state_root, child, [price.key])[price.key]
    assert rp.PublishedEntry.decode(entry or b"").value == b"7.31"
    asked = [(1, "a length, times four: one key"), (1, "1: it is in a child trie"), (1, "a length, times four: 10")]
    asked += [(10, "its name: “pubsub”, and 2000"), (1, "a length, times four: 32"), (32, "the hash of “price/0”")]
    cut(counter.call("KeyToIncludeInRelayProof_keys_to_prove"), asked)
    return (child,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ### Exercise: what the request costs

    The table shows the nodes that lead to the price. How many bytes fewer would the nodes of the relay proof have if
    the counter did not ask for the price? Put the number in place of `None`, in the cell below the table.
    """)
    return


@app.cell
def _(child, net, price, relay_parent):
    way = net.chains.relay_chain.prove_child_read(relay_parent, child.storage_key, [price.key])
    always = net.chains.relay_chain.prove_read(relay_parent, list(rp.static_relay_keys(rx.ParaId(3000))))
    nodes = [(f"0x{rt.blake2_256(node).hex()[:8]}…", len(node), node in always) for node in way]
    Table(("node", "bytes", "is also on the way to a key that is always proven"), nodes)
    return always, way


@app.cell
def _():
    answer_2 = None
    return (answer_2,)


@app.cell(hide_code=True)
def _():
    aid_2 = Aid(
        "A node that is also on the way to a key that is always proven is carried in any case. Add up the others.",
        115,
        "The nodes that only the price needs have 115 bytes together.",
    )
    aid_2
    return (aid_2,)


@app.cell(hide_code=True)
def _(always, answer_2, block, way):
    def check_2(given: object) -> Verdict:
        if type(given) is not int or given < 1:
            return Verdict(False, "The answer is a number of bytes.")
        if given == way.proof_bytes:
            return Verdict(False, "That is the whole way. But some of its nodes are in the proof anyway.")
        if given != block.relay_proof.proof_bytes - always.proof_bytes:
            return Verdict(False, "That is not it. Which nodes would no other key need?")
        return Verdict(True, f"The relay proof has {block.relay_proof.proof_bytes:,} bytes in all.")

    verdict_2 = check_2(answer_2)
    verdict_2
    return check_2, verdict_2


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    A real runtime is compiled from Rust, has dozens of exports and imports, and its blocks are made in the same way.
    `relaycast runtime show FILE` lists what a compiled runtime (a `.wasm` file) exports and imports. The guide
    [Your own runtime](../guides/real-runtimes.md) says how its chain joins a network, and what its blocks cost.
    """)
    return


if __name__ == "__main__":
    app.run()
