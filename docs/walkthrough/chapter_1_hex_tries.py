"""Walkthrough, chapter 1: hex tries by hand."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="1. Hex tries by hand", width="medium")

with app.setup:
    import marimo as mo

    import relaycast_trie as rt

    from lesson import Aid, Table, Verdict, bytes_with_meaning, nibbles
    from trie_pictures import draw_trie


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 1. Hex tries by hand

    A hash turns any bytes into 32 bytes, and nobody can find other bytes with the same hash. A blockchain wants that
    for its whole *state*, which is millions of pairs of a key and a value. There should be **one** hash for all of
    them, the *state root*, and it should change whenever any pair changes.

    Hashing one long list of all pairs would do that, but it has two faults. One changed pair means hashing everything
    again. And whoever wants to show you that a single pair is in the list must hand you the whole list.

    A **trie** mends both. It is a tree in which the *path* from the root to a value is spelled by the key. Each node
    of the tree is hashed, and a parent contains the hashes of its children. In this chapter you build one by hand, to
    the byte, in the format of Polkadot. (Polkadot is a network of blockchains; chapter 4 says more.)

    (The first cell imports what the chapter works with. `rt` is relaycast's package for tries; `lesson` and
    `trie_pictures` belong to this course, and only print tables and draw.)
    """)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Keys are paths

    Polkadot's tries are *hex* tries: a path is taken in half bytes. A half byte is called a **nibble**; it is one
    hexadecimal digit, `0` to `f`. So a key of three bytes is a path of six steps, and at every step there are
    sixteen ways to go on.

    Here is our whole state, four pairs. Watch how the paths begin.
    """)
    return


@app.cell
def _():
    pairs = {
        b"do": b"verb",
        b"dog": b"puppy",
        b"dot": b"punctuation",
        b"horse": b"a stallion, fifteen hands high",
    }
    Table(("key", "path, one nibble at a time"), [(key.decode(), nibbles(key)) for key in pairs])
    return (pairs,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    All four begin with `6`, because the letters `a` to `o` are the bytes 0x61 to 0x6f. The first three go on with
    `4 6 f`; `horse` parts from them at the second nibble. What is shared is stored once:
    """)
    return


@app.cell
def _(pairs):
    db, root = rt.build_database(pairs, state_version=rt.StateVersion.V1)
    draw_trie(db, root)
    return db, root


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Read the picture from the top. To find `dog`, whose path is `6 4 6 f 6 7`:

    1. the root says *path 6*: our first nibble, `6`, fits;
    2. the next nibble, `4`, says which way to go (the round labels);
    3. the node there says *path 6f*: that fits as well. If our path ended here, we would want the value of this node:
       that is the key `do`;
    4. the next nibble, `6`, leads to a leaf, which says *path 7*. That is the end of our path: the value is `puppy`.

    There are just two kinds of nodes, plus a special one for a trie without any keys:

    - a **leaf** has the rest of one path, and the value;
    - a **branch** has the nibbles that everything below it shares, up to sixteen children, one for each next nibble,
      and a value if a key ends right there.

    The nibble that chooses the child is *not* repeated in the child: its place among the children says it already.
    """)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## A leaf, byte by byte

    Let us write the leaf of `dog` as bytes. Its part of the path is the single nibble `7`.

    - The first byte, the *header*, says what comes. A leaf's header has the bits `01` in front. The other six bits
      count the nibbles of the node's own piece of the path, its *partial path*. So `01000001`, which is `0x41`, is a
      leaf with one nibble.
    - Then the nibbles, two to a byte. When their number is odd, the first one stands alone, behind a zero: `07`.
    - Then the value, with its length in front. Polkadot's encoding, *SCALE*, writes a length of up to 63 as one byte:
      the length times four. (The lowest two bits say how many bytes the length takes; `00` means one.) `puppy` has 5
      letters, and 5 times 4 is 20, so the byte is `0x14`.
    """)
    return


@app.cell
def _():
    bytes_with_meaning(
        [
            (b"\x41", "01 000001: a leaf, 1 nibble"),
            (b"\x07", "the nibble 7, with a zero to fill the byte"),
            (b"\x14", "the length of the value: 5 times 4"),
            (b"puppy", "the value, “puppy”"),
        ]
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    relaycast writes the same eight bytes:
    """)
    return


@app.cell
def _():
    dog = rt.encode_node(rt.Leaf(partial=b"\x07", value=b"puppy"))
    dot = rt.encode_node(rt.Leaf(partial=b"\x04", value=b"punctuation"))
    dog.hex(" ")
    return dog, dot


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    (In Python `partial` has one byte for each nibble; in the encoded node there are two nibbles to a byte.)

    ## How a parent names its children

    A hash has 32 bytes. It would be a waste to put a hash of 32 bytes in the place of a leaf of eight, so:

    - a child of **fewer than 32 bytes** stands *inline*, inside its parent (a dashed frame in the picture);
    - a longer child is named by its **hash**. The hash function is Blake2b, with a result of 32 bytes.

    A length stands in front of both, as in front of a value. 32 means a hash, less means the child itself.

    Now the branch of `do`. Its header begins with `11`: a branch that has a value itself (`10` is one that has none).
    Two bytes, a *bitmap*, say which of the sixteen children there are. Here bit 6 and bit 7 are set, which makes
    `c0 00` when the lowest byte comes first. In Polkadot it nearly always does; that is called *little-endian*.
    """)
    return


@app.cell
def _(dog, dot):
    children: list[bytes | None] = [None] * 16
    children[6], children[7] = dog, dot
    do = rt.encode_node(rt.Branch(partial=b"\x06\x0f", children=tuple(children), value=b"verb"))
    bytes_with_meaning(
        [
            (do[0:1], "11 000010: a branch with a value, 2 nibbles"),
            (do[1:2], "the nibbles 6 f"),
            (do[2:4], "children 6 and 7 are there"),
            (do[4:5], "the value's length, 4 times 4"),
            (do[5:9], "the value, “verb”"),
            (do[9:10], "the length of child 6, 8 times 4"),
            (do[10:18], "child 6, inline: the leaf of “dog” that you have seen"),
            (do[18:19], "the length of child 7, 14 times 4"),
            (do[19:], "child 7, inline: the leaf of “dot”"),
        ]
    )
    return (do,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    That makes 33 bytes: one too long to stand inline, so the root names this branch by its hash. The same holds for
    the leaf of `horse`, whose value alone has 30 bytes. And with these two hashes you have the root node:
    """)
    return


@app.cell
def _(do, pairs):
    horse = rt.encode_node(rt.Leaf(partial=bytes([6, 15, 7, 2, 7, 3, 6, 5]), value=pairs[b"horse"]))
    ways: list[bytes | None] = [None] * 16
    ways[4], ways[8] = rt.blake2_256(do), rt.blake2_256(horse)
    top = rt.encode_node(rt.Branch(partial=b"\x06", children=tuple(ways), value=None))
    bytes_with_meaning(
        [
            (top[0:1], "10 000001: a branch without a value, 1 nibble"),
            (top[1:2], "the nibble 6, with a zero to fill the byte"),
            (top[2:4], "children 4 and 8 are there"),
            (top[4:5], "the length of what names child 4, 32 times 4"),
            (top[5:37], "child 4: the hash of the branch of “do”"),
            (top[37:38], "the length of what names child 8, 32 times 4"),
            (top[38:], "child 8: the hash of the leaf of “horse”"),
        ]
    )
    return (top,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The hash of the root node is the state root. (The root node is always hashed, however short it is.)
    """)
    return


@app.cell
def _(pairs, top):
    by_hand = rt.blake2_256(top)
    by_relaycast = rt.trie_root(pairs, state_version=rt.StateVersion.V1)
    Table(
        ("the state root", ""),
        [("by hand", f"0x{by_hand.hex()}"), ("by relaycast", f"0x{by_relaycast.hex()}")],
    )
    return by_hand, by_relaycast


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The two are equal: that is a state root, made by hand, exactly as a node of Polkadot computes it.

    ## What one change costs

    Let `puppy` become `hound`. Nodes that were hashed anew are yellow: the branch that holds the leaf, and the root.
    The leaf of `horse` is as it was, and so is its hash. With a million keys it is the same: only the nodes on *one
    path* change, and a path is a few nodes long.
    """)
    return


@app.cell
def _(db, pairs):
    changed_db, changed_root = rt.build_database({**pairs, b"dog": b"hound"}, state_version=rt.StateVersion.V1)
    draw_trie(changed_db, changed_root, marked=set(changed_db) - set(db))
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise: a leaf of your own

    A trie holds two keys, `cat` and `cow`:

    | key | path | value |
    |---|---|---|
    | `cat` | `6 3 6 1 7 4` | `meow` |
    | `cow` | `6 3 6 f 7 7` | `moo` |

    What are the bytes of the leaf of `cow`? Take paper and pencil. Where do the two paths part? Which nibbles are left
    for the leaf? What is its header, and what is the length in front of the value? (`m` is the byte `6d`, `o` is `6f`.)

    Then write the bytes as hexadecimal digits in place of the `00`; spaces between them do not matter. A cell below
    says what is right and what is not.
    """)
    return


@app.cell
def _():
    answer = "00"
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "Both paths begin with 6 3 6. The branch takes the nibble after them to choose the child, so the leaf keeps "
        "what comes after that. Two nibbles are left: the header of a leaf is 0x40 plus their number.",
        "42 77 0c 6d 6f 6f",
        "0x42 is a leaf with two nibbles, 77 are the nibbles, 0c is the length 3 times 4, and 6d 6f 6f is “moo”.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(answer):
    def check(digits: str) -> Verdict:
        try:
            data = bytes.fromhex(digits)
        except ValueError:
            return Verdict(False, f"{digits!r} is no row of bytes: write two digits, 0 to f, for each, and no 0x.")
        try:
            node = rt.decode_node(data)
        except rt.CodecError as error:
            return Verdict(
                False, f"These bytes are no node: {error}. Look at the header and at how a length is written."
            )
        if not isinstance(node, rt.Leaf):
            kind = type(node).__name__.lower()
            return Verdict(False, f"The header 0x{data[0]:02x} begins a node of the kind “{kind}”, not a leaf.")
        path = " ".join(f"{nibble:x}" for nibble in node.partial) or "no nibbles"
        if node.partial != b"\x07\x07":
            return Verdict(
                False,
                f"A leaf, good. Its partial path reads “{path}”. Which nibbles are shared with “cat”, "
                "and which one does the branch use up to choose the child?",
            )
        if node.value != b"moo":
            return Verdict(False, f"Header and path are right. The value reads {node.value!r}: look at its length.")
        if data != rt.encode_node(node):
            return Verdict(False, "The leaf is right, but there are bytes after its end.")
        return Verdict(True, "These are the bytes that a node of Polkadot writes. As they are fewer than 32: inline.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    You know now what a hex trie is, how its nodes look as bytes, and why a change touches one path only. Chapter 2
    looks at a detail with great effect: what happens to values that are long.
    """)
    return


if __name__ == "__main__":
    app.run()
