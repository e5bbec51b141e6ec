"""Walkthrough, chapter 9: one publication through the node, as polkadot.js sends it."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="9. The node", width="medium")

with app.setup:
    from typing import Any

    import marimo as mo

    import relaycast as rc
    import relaycast_node as node
    import relaycast_pallets as rp
    import relaycast_trie as rt

    from lesson import Aid, Listing, Table, Verdict, bytes_with_meaning
    from trie_pictures import Picture, framed


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 9. The node

    Wallets and indexers do not hold a chain themselves. They ask a *node*, a computer that runs the chain, what is
    stored, what happened in a block, and whether a transaction is valid. The requests and answers are **JSON-RPC**:
    JSON with the name of a method and its arguments.

    `relaycast serve oracle` starts such a node. It answers like a node of Substrate, the framework that Polkadot's
    chains are built with. So *polkadot.js*, the JavaScript library that many wallets use, can work with it. In this
    chapter you publish one price through it.
    """)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    In polkadot.js that takes a few lines. (`0x372e3432` is the value “7.42”; it is valid for 50 blocks.)
    """)
    return


@app.cell(hide_code=True)
def _():
    Listing(
        """import { ApiPromise, Keyring, WsProvider } from "@polkadot/api";
import { blake2AsHex } from "@polkadot/util-crypto";
const provider = new WsProvider("ws://127.0.0.1:9944/para/2000");
const api = await ApiPromise.create({ provider });
const alice = new Keyring({ type: "sr25519" }).addFromUri("//Alice");
const key = blake2AsHex("price/dot");
await api.tx.publisher.publish([[key, "0x372e3432", 50]]).signAndSend(alice);"""
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    What do these lines send? We do the same here without the library, request by request. The chains are those of
    `oracle`, a network that comes with relaycast. They run inside this notebook, and a block comes when we ask for one.

    ## Four questions before the first transaction

    A client that connects asks four things:

    - The **metadata** lists every pallet of the runtime with its number, its calls and their types. From it polkadot.js
      makes `api.tx.publisher.publish`.
    - The **version** of the runtime and the **genesis hash**, the hash of the chain's first block, go into what is
      signed. So a transaction is valid for one runtime of one chain.
    - The **nonce** counts the transactions of the account. So none is valid twice.

    The next two cells do what the library does. *Alice* is an account for tests whose secret key everybody knows.
    """)
    return


@app.cell
def _():
    alice = node.dev_account("Alice")
    address = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"  # Alice's public key, as wallets write it
    price_key = rt.blake2_256(b"price/dot")
    pallet, publish = 51, 0  # the numbers that the metadata gives to the pallet and to its call

    def call_of(items: list[tuple[bytes, bytes, int]]) -> bytes:
        """Return `publisher.publish(items)` as SCALE: short lists and values, whose length fits one byte."""
        encoded = [key + bytes([4 * len(value)]) + value + ttl.to_bytes(4, "little") for key, value, ttl in items]
        return bytes([pallet, publish, 4 * len(items)]) + b"".join(encoded)

    return alice, address, price_key, call_of


@app.cell
def _(alice, address, price_key, call_of):
    def publish_through_the_node(value: bytes, ttl: int) -> dict[str, Any]:
        """Ask, sign, submit, and follow the value; return all that was said."""
        with rc.serve("oracle", block_time="manual") as chains:
            chains.new_block(3)

            def ask(method: str, *params: Any, para_id: int | None = 2000) -> Any:
                return chains.call(method, *params, para_id=para_id)

            version = ask("state_getRuntimeVersion")
            genesis = bytes.fromhex(ask("chain_getBlockHash", 0)[2:])
            nonce = ask("system_accountNextIndex", address)
            metadata = bytes.fromhex(ask("state_getMetadata")[2:])
            implicit = node.Implicit(version["specVersion"], version["transactionVersion"], genesis, genesis)
            signed = node.sign(alice, call_of([(price_key, value, ttl)]), node.Extra(nonce), implicit)
            extrinsic = signed.encode()
            transaction = ask("author_submitExtrinsic", f"0x{extrinsic.hex()}")
            stored = []
            child = f"0x{rp.derive_child_info(2000).prefixed_storage_key().hex()}"
            for _ in range(3):
                chains.new_block()
                block = ask("chain_getBlock")["block"]
                entry = ask("childstate_getStorage", child, f"0x{price_key.hex()}", para_id=None)
                stored.append((int(block["header"]["number"], 16), len(block["extrinsics"]), entry))
        return locals()

    said = publish_through_the_node(b"7.42", 50)
    Table(
        ("request", "answer"),
        [
            ("state_getMetadata", f"{len(said['metadata']):,} bytes, with the name Publisher in them"),
            ("state_getRuntimeVersion", f"{said['version']['specName']} {said['version']['specVersion']}"),
            ("chain_getBlockHash [0]", f"0x{said['genesis'].hex()[:16]}…"),
            ("system_accountNextIndex", said["nonce"]),
        ],
    )
    return publish_through_the_node, said


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## The call and its signature

    The call is in SCALE. Two bytes choose the pallet and its call, then come the arguments:
    """)
    return


@app.cell
def _(price_key, call_of):
    call = call_of([(price_key, b"7.42", 50)])
    bytes_with_meaning(
        [
            (call[:1], "the pallet: publisher"),
            (call[1:2], "its call: publish"),
            (call[2:3], "the number of items, times 4"),
            (call[3:35], "the key: the hash of “price/dot”"),
            (call[35:36], "the length of the value, 4 times 4"),
            (call[36:40], "the value, “7.42”"),
            (call[40:], "time to live: 50 relay blocks"),
        ]
    )
    return (call,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Alice signs the call together with nonce, versions, genesis hash, *era* and *tip*. (The era says for how many blocks
    the transaction is valid, 0 for ever. The tip is an extra fee.) She does not send versions and genesis hash, as the
    node knows them. The **extrinsic** that travels to the node holds who signs, the signature, the extra data and the
    call:
    """)
    return


@app.cell
def _(call, said):
    extrinsic = said["extrinsic"]
    bytes_with_meaning(
        [
            (extrinsic[:2], "the length of the rest"),
            (extrinsic[2:3], "0x84: version 4, signed"),
            (extrinsic[3:36], "who signs: 00 for an account id, then Alice's public key"),
            (extrinsic[36:37], "the kind of signature: sr25519"),
            (extrinsic[37:101], "the signature, new each time"),
            (extrinsic[101 : -len(call)], "era, nonce, tip, and no hash of the metadata"),
            (extrinsic[-len(call) :], "the call"),
        ]
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Into a block, and on to the relay chain

    `author_submitExtrinsic` returns a hash: the extrinsic waits in the **pool**, the node's list of transactions that
    are in no block yet. The next block of parachain 2000 takes it, and its runtime sends a `Publish` to the relay
    chain, as in chapter 4. One relay block later the entry is in the child trie, and any client can read it with
    `childstate_getStorage`.
    """)
    return


@app.cell(hide_code=True)
def _():
    def stations() -> Picture:
        names = ("polkadot.js", "node: pool", "block of 2000", "relay chain", "any client")
        steps = ("author_submit…", "next block", "Publish", "childstate_…")
        drawn = []
        for index, name in enumerate(names):
            x = 8 + 168 * index
            drawn.append(f'<rect x="{x}" y="14" width="118" height="36" rx="5" fill="#e3f2fd" stroke="#90a4ae"/>')
            drawn.append(f'<text x="{x + 59}" y="37" text-anchor="middle" fill="#37474f">{name}</text>')
            if index < len(steps):
                drawn.append(f'<path d="M{x + 118} 32h44m-6 -4l6 4l-6 4" fill="none" stroke="#37474f"/>')
                label = f'x="{x + 143}" y="68" text-anchor="middle" fill="#37474f" font-size="10"'
                drawn.append(f"<text {label}>{steps[index]}</text>")
        return framed("".join(drawn), 810, 80, "The way of a publication: " + ", ".join(names))

    stations()
    return


@app.cell
def _(said):
    Table(
        ("block of 2000", "extrinsics in it", "the entry on the relay chain then"),
        [(number, count, entry or "none yet") for number, count, entry in said["stored"]],
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Two extrinsics are in every block of a parachain: one with the relay proof and other data of the relay parent, and
    one with the time. Both are **inherents**: the block's author adds them, and nobody signs. In block 4, ours is the
    third.

    ## Exercise: read the entry

    The last column shows an entry in SCALE, as in chapter 2: the value with its length, the time to live, and the
    relay block that wrote the entry. Each of the two numbers takes four bytes, the lowest byte first. The time to live
    counts from the block that wrote the entry. Which is the first relay block in which the entry is no longer valid?
    Put its number in place of `None`.
    """)
    return


@app.cell
def _():
    answer = None
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "The last four bytes are the block that wrote the entry. The four before them are its time to live.",
        55,
        "It was written by relay block 5 and lives for 50 blocks: 5 + 50.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(answer, said):
    def check(block: object) -> Verdict:
        if type(block) is not int or block < 1:
            return Verdict(False, "The answer is the number of a relay block, such as 12.")
        entry = bytes.fromhex(said["stored"][-1][2][2:])
        ttl, written = (int.from_bytes(entry[start : start + 4], "little") for start in (5, 9))
        if block == ttl:
            return Verdict(False, "That is how long it lives. It did not begin in block 0.")
        if block == written:
            return Verdict(False, "That block wrote it. How long does it live from there?")
        if block != ttl + written:
            return Verdict(False, "Not that one. Read both numbers of the entry, and add what belongs together.")
        return Verdict(True, "From then on the relay chain may remove it, and readers are told that its time is up.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    That is all a library adds: it reads metadata, encodes, signs and follows.

    To do it with polkadot.js itself, run `relaycast serve oracle` in one terminal. In another one, write the lines at
    the top of this chapter into `publish.mjs` and run `node publish.mjs`. (Ctrl-C ends both.) The guide
    [Clients](../guides/clients.md) says how to install polkadot.js, and shows libraries for TypeScript and Python.
    """)
    return


if __name__ == "__main__":
    app.run()
