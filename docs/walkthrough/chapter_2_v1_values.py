"""Walkthrough, chapter 2: how state version 1 stores long values."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="2. V1 values", width="medium")

with app.setup:
    import marimo as mo

    import relaycast_pallets as rp
    import relaycast_trie as rt

    from lesson import Aid, Table, Verdict, bytes_with_meaning
    from trie_pictures import draw_trie

    V0, V1 = rt.StateVersion.V0, rt.StateVersion.V1


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 2. V1 values

    In chapter 1 every value stood inside its node. That is simple, but long values get in the way of others. Here the
    key `do` has a long value, and its node lies on the path to `dog`. (All keys begin with `do`, so the node of `do`
    is the root.)
    """)
    return


@app.cell
def _():
    pairs = {
        b"do": b"to perform; to carry out; to bring to pass. " * 5,
        b"dog": b"puppy",
        b"dot": b"punctuation",
    }
    db_v0, root_v0 = rt.build_database(pairs, state_version=V0)
    draw_trie(db_v0, root_v0)
    return db_v0, pairs, root_v0


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Whoever reads `dog` needs this node, and with it come 220 bytes of `do` that nobody asked for. And whenever `dog`
    changes, these 220 bytes are hashed again.

    This is *state version 0*, **V0**. Polkadot's chains have since moved to *state version 1*, **V1**, in which a
    value **longer than 32 bytes** is stored outside of its node, under its own hash. The node holds only the hash.
    """)
    return


@app.cell
def _(pairs):
    db_v1, root_v1 = rt.build_database(pairs, state_version=V1)
    draw_trie(db_v1, root_v1)
    return db_v1, root_v1


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The green box is no node: it is the bare value, kept in the same database under its hash. Such a value is called
    *external*. The root node shrank, and it is still bound to the value: whoever changes a letter of it changes its
    hash, and so the root.

    What reading each key takes now, in bytes of nodes and external values:
    """)
    return


@app.cell
def _(db_v0, db_v1, pairs, root_v0, root_v1):
    rows = []
    for key in pairs:
        before = rt.StorageProof.generate(db_v0, root_v0, [key])
        after = rt.StorageProof.generate(db_v1, root_v1, [key])
        rows.append((key.decode(), before.proof_bytes, after.proof_bytes))
    Table(("to read", "bytes in V0", "bytes in V1"), rows)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Reading `do` itself costs 30 bytes more: the node holds a hash of 32 bytes in place of a length of two. (SCALE
    writes lengths of 64 to 16,383 in two bytes.) Reading anything else got much cheaper.

    ## Where exactly the border is

    A hash has 32 bytes, so storing a value of 32 bytes or fewer outside would gain nothing. These leaves hold values
    of 31, 32, 33 and 1,000 bytes. Look at the header, the first byte, and at the size of the leaf.
    """)
    return


@app.cell
def _():
    def leaf_of(value: bytes, version: rt.StateVersion) -> bytes:
        stored = rt.HashedValue(rt.blake2_256(value)) if version.is_external(value) else value
        return rt.encode_node(rt.Leaf(b"\x07", stored))

    leaves = []
    for length in (31, 32, 33, 1_000):
        for version in (V0, V1):
            node = leaf_of(bytes(length), version)
            leaves.append((length, version.name, f"{node[0]:#04x} = {node[0]:08b}", len(node)))
    Table(("value bytes", "version", "header", "bytes of the leaf"), leaves)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    From 33 bytes on, V1 writes another header. All headers there are, with `n` for the bits that count nibbles:

    | header | node |
    |---|---|
    | `01nnnnnn` | leaf, value inside |
    | `001nnnnn` | leaf, hash of the value inside |
    | `10nnnnnn` | branch without a value |
    | `11nnnnnn` | branch, value inside |
    | `0001nnnn` | branch, hash of the value inside |
    | `00000000` | the empty trie |

    (If a path has more nibbles than these bits can count, further bytes go on counting.) The hash of a value follows
    the path directly, without a length before it: it always has 32 bytes. The header tells the two kinds apart, so a
    reader need not know the version of a state. Each node says by itself where its value is.

    ## From V0 to V1

    So a chain can change its version without rewriting everything. Old values stay inside their nodes until they are
    written again. Here the state switches to V1 (`migrate`), then `dot` gets a long value, and nobody writes `do`:
    """)
    return


@app.cell
def _(pairs):
    state = rp.State(pairs, state_version=V0)
    state.migrate(V1)
    state.put(b"dot", b"a small round mark; the shorter signal of the Morse code")
    draw_trie(state.db, state.commit())
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The node of `do` was written anew, since it names its child by hash. Yet its value stayed inside.

    The same pairs can therefore have different roots: the value of `do` is inside its node here, and outside of it in a
    state that began as V1. A root belongs to the pairs *and* to the way in which their values are stored.

    ## What a published value looks like

    This course is on its way to *publishing*: one chain writes small values into a trie, for other chains to read
    (chapter 4). What is stored there is not the bare value but an **entry**, in SCALE. It holds the value with its
    length in front, a *time to live*, and the number of the block that wrote it. The time to live says for how many
    blocks the value is valid. Both numbers take four bytes.

    Here is the entry of the value `7.31`, written by block 100, with a time to live of 50 blocks. (`rp` is relaycast's
    package for what a chain stores, and for the rules of storing it.)
    """)
    return


@app.cell
def _():
    entry = rp.PublishedEntry(b"7.31", ttl=50, when_inserted=100).encode()
    bytes_with_meaning(
        [
            (entry[:1], "the length of the value, 4 times 4 (SCALE, as in chapter 1)"),
            (entry[1:5], "the value, “7.31”"),
            (entry[5:9], "time to live: 50 blocks, little-endian (0 would be for ever)"),
            (entry[9:], "written by block 100"),
        ]
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise: the longest value that stays inside

    What a trie of version 1 stores as its value is the whole entry, so the border of 32 bytes is about the entry. How
    many bytes may a *published value* have at most, so that its entry still stands inside the node?

    Put the number in place of `None`.
    """)
    return


@app.cell
def _():
    answer = None
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "Up to 32 bytes stay inside. An entry holds the value's length, the value, its time to live and its block: see "
        "the table above for how many bytes each takes.",
        23,
        "1 byte of length, 4 of time to live and 4 of the block leave 23 of the 32 bytes.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(answer):
    def check(length: object) -> Verdict:
        if type(length) is not int or not 0 <= length <= 2_048:
            return Verdict(False, "The answer is a number of bytes, for instance 5.")
        size = len(rp.PublishedEntry(bytes(length), ttl=0, when_inserted=1).encode())
        if V1.is_external(bytes(size)):
            return Verdict(
                False,
                f"The entry of a value of {length} bytes has {size} bytes: more than 32, so it is stored outside. "
                "What does an entry hold besides its value?",
            )
        if not V1.is_external(bytes(size + 1)):
            return Verdict(
                False,
                f"A value of {length} bytes stays inside, as its entry has {size} bytes. "
                "But a longer value would stay inside, too.",
            )
        return Verdict(True, f"Its entry has {size} bytes, and one byte more would move it outside.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    That border decides what a published value costs to prove. A short one comes with its leaf. A longer one comes as a
    piece of its own, and its leaf holds 32 bytes of hash besides. Chapter 3 is about such proofs.
    """)
    return


if __name__ == "__main__":
    app.run()
