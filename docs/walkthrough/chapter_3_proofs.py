"""Walkthrough, chapter 3: proofs."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="3. Proofs", width="medium")

with app.setup:
    from collections.abc import Iterable
    from inspect import getsource

    import marimo as mo

    import relaycast_trie as rt
    from relaycast_trie import reference

    from lesson import Aid, Listing, Table, Verdict
    from trie_pictures import draw_trie

    V1 = rt.StateVersion.V1


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 3. Proofs

    Suppose you know one hash and nothing else: the root of a state, on which all nodes of the chain agree. Somebody
    you do not trust tells you: *the price of eth is 3316.4*. With a few nodes of the trie they can **prove** it.

    (A *node* is one of two things: a piece of a trie, or a computer that runs a chain. In this chapter all further
    nodes are pieces of a trie.)

    Our state has six prices. From here on keys are themselves hashes: the name of a price is hashed with Blake2b, as
    publishers do it (chapter 4). Hashed keys all have the same length and are spread evenly, so no branch of the trie
    grows much deeper than others.
    """)
    return


@app.cell
def _():
    quotes = {
        "btc": "97211.5", "dot": "7.31", "eth": "3316.4",
        "ksm": "31.8", "sol": "189.6", "xmr": "214.9",
    }  # fmt: skip
    keys = {name: rt.blake2_256(name.encode()) for name in quotes}
    pairs = {keys[name]: quote.encode() for name, quote in quotes.items()}
    db, root = rt.build_database(pairs, state_version=V1)
    Table(("name", "price", "key"), [(name, quotes[name], f"{keys[name].hex()[:12]}…") for name in quotes])
    return db, keys, pairs, root


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    This is the trie. Yellow are the nodes that a reader of `eth` meets on the way from the root. (The paths of the
    leaves are too long for the picture: `d5f4…, 61 long` is a path of 61 nibbles that begins with `d5f4`.)
    """)
    return


@app.cell
def _(db, keys, root):
    proof = rt.StorageProof.generate(db, root, [keys["eth"]])
    draw_trie(db, root, marked=proof.by_hash())
    return (proof,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The yellow nodes *are* the proof. It is a set of nodes, no more: no order, no directions. Here is what the reader
    receives, drawn from the proof alone. Of everything else the reader has only hashes, inside the nodes that came.
    """)
    return


@app.cell
def _(proof, root):
    draw_trie(proof.by_hash(), root)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Checking it, step by step

    The reader hashes every node that came, and then walks from the root. A node counts only if its hash is the one
    that the walk looks for, and if its partial path fits the key:
    """)
    return


@app.cell
def _(keys, proof, root):
    by_hash = {rt.blake2_256(node): node for node in proof}
    path = [int(digit, 16) for digit in keys["eth"].hex()]
    steps, wanted, depth = [], root, 0
    while True:
        node = rt.decode_node(by_hash[wanted])
        assert isinstance(node, rt.Leaf | rt.Branch)
        assert list(node.partial) == path[depth : depth + len(node.partial)]
        depth += len(node.partial)
        if isinstance(node, rt.Leaf):
            steps.append((f"0x{wanted.hex()[:8]}…", f"a leaf with the rest of our path; its value: {node.value!r}"))
            break
        child = node.children[path[depth]]
        assert child is not None
        steps.append((f"0x{wanted.hex()[:8]}…", f"a branch; our next nibble is {path[depth]:x}, its child there is"))
        wanted, depth = child, depth + 1
    Table(("looked for the hash", "found"), steps)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Suppose a liar changes one digit of the price. The leaf then has another hash, and the branch names the old one:
    the walk ends with a node that is not there. So the liar has to change the branch, too, and then the root. But the
    reader knows the root from elsewhere.

    `verify` does this walk. It either returns the true value or raises an error:
    """)
    return


@app.cell
def _(keys, proof, root):
    def told(nodes: Iterable[bytes], name: str, *, strict: bool = True) -> str:
        try:
            value = rt.StorageProof(nodes).verify(root, [keys[name]], strict=strict)[keys[name]]
        except rt.ProofError as error:
            return f"{type(error).__name__}: {str(error)[:54]}…"
        return "proven absent" if value is None else f"proven: {value.decode()}"

    honest = list(proof)
    forged = [node.replace(b"3316.4", b"9316.4") for node in honest]
    without_root = [node for node in honest if rt.blake2_256(node) != root]
    padded = [*honest, b"something else"]
    Table(
        ("what the reader is given", "what verify says"),
        [
            ("the honest proof", told(honest, "eth")),
            ("one digit of the price changed", told(forged, "eth", strict=False)),
            ("the same without the root node", told(without_root, "eth")),
            ("something else added", told(padded, "eth")),
            ("the honest proof, asked for btc", told(honest, "btc", strict=False)),
        ],
    )
    return honest, told


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    `verify` names the first thing that is wrong, with its hash. The last two rows need a word.

    *Something else added*: a node that nothing needs makes no proof wrong, and a tolerant reader (`strict=False`)
    ignores it. But it makes the proof larger, so a reader may refuse it: that is a *strict* check. The blocks of
    chapter 5 are strict.

    *Asked for btc*: a proof answers only what it was made for. Of `btc` this one says neither that it is there nor that
    it is not. The root names a child on its path, and that child did not come.

    ## Proving that something is not there

    The name `doge` was never written. Its path leads to a place where the trie has nothing: a branch without that
    child, or a node whose partial path is another one. Showing that place proves the absence. So nobody can leave out a
    key and claim that it does not exist. Here the root alone is enough: it has no child for the first nibble of `doge`.
    """)
    return


@app.cell
def _(db, root):
    doge = rt.blake2_256(b"doge")
    absence = rt.StorageProof.generate(db, root, [doge])
    answered = absence.verify(root, [doge], strict=True)[doge]
    Table(
        ("path of doge", "nodes of the proof", "bytes", "value of doge"),
        [(f"{doge.hex()[:4]}…", len(absence), absence.proof_bytes, repr(answered))],
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What proofs cost

    In a trie with more keys, paths are longer, and branches are fuller: each branch on the path brings up to fifteen
    hashes of siblings, 33 bytes each with their length. That is what most of a proof consists of. So the cost of
    proving *one* small value grows with the logarithm of the number of keys:
    """)
    return


@app.cell
def _():
    costs = []
    for count in (10, 100, 1_000, 10_000):
        many = {rt.blake2_256(f"key {index}".encode()): bytes(16) for index in range(count)}
        many_db, many_root = rt.build_database(many, state_version=V1)
        sample = sorted(many)[:: count // 10]
        singles = [rt.StorageProof.generate(many_db, many_root, [key]) for key in sample]
        together = rt.StorageProof.generate(many_db, many_root, sample)
        alone = sum(single.proof_bytes for single in singles) // len(singles)
        compact = rt.CompactProof.encode(together, many_root).proof_bytes
        costs.append((count, alone, together.proof_bytes, compact))
    Table(("keys in the trie", "bytes to prove one", "to prove ten in one proof", "the ten, compact"), costs)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Ten values in one proof cost less than ten proofs, as they share the upper nodes. The last column is the *compact*
    form of the same proof, for sending. If a child is itself in the proof, the reader can compute its hash, and the
    compact form leaves that hash out.

    ## Exercise: choose the nodes

    This time you are the one who proves. The trie below holds four keys; the pieces are numbered. Which numbers prove
    the value of `whitepaper`, whose key begins with the nibbles `3 f`? Choose all that is needed and nothing else: the
    check is strict. Write a set of numbers in place of `set()`, such as `{1, 2}`.
    """)
    return


@app.cell
def _():
    library = {
        rt.blake2_256(b"whitepaper"): b"Polkadot: vision for a heterogeneous multi-chain framework",
        rt.blake2_256(b"motto"): b"less trust, more truth",
        rt.blake2_256(b"licence"): b"Apache License, Version 2.0, January 2004",
        rt.blake2_256(b"news"): b"start here",
    }
    shelf, shelf_root = rt.build_database(library, state_version=V1)
    pieces = sorted(shelf)
    draw_trie(shelf, shelf_root, numbers={piece: number for number, piece in enumerate(pieces, start=1)})
    return pieces, shelf, shelf_root


@app.cell
def _():
    answer: set[int] = set()
    return (answer,)


@app.cell(hide_code=True)
def _():
    aid = Aid(
        "Begin at the root and follow the nibbles 3, then f. A value of more than 32 bytes is a piece of its own.",
        {3, 5, 7, 8},
        "The root, the branch below it, the leaf, and the value, which stands outside of its leaf.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(answer, pieces, shelf, shelf_root):
    def check(chosen: object) -> Verdict:
        if not isinstance(chosen, set) or not all(type(number) is int for number in chosen):
            return Verdict(False, "The answer is a set of numbers, for instance {1, 2}.")
        unknown = chosen - set(range(1, len(pieces) + 1))
        if unknown or not chosen:
            return Verdict(False, f"Choose among the numbers 1 to {len(pieces)}.")
        key = rt.blake2_256(b"whitepaper")
        try:
            rt.StorageProof(shelf.get(pieces[number - 1]) or b"" for number in chosen).verify(
                shelf_root, [key], strict=True
            )
        except rt.RootMismatch:
            return Verdict(False, "The reader looks for the root first, and it is not among these.")
        except rt.MissingNode as missing:
            place = f"after {len(missing.path)} nibbles" if len(missing.path) < 64 else "at the end of the path"
            return Verdict(False, f"The reader gets on well, but {place} something is looked for that is not there.")
        except rt.UnusedNodes as unused:
            return Verdict(False, f"All that is needed is there, and {len(unused.hashes)} nodes too many.")
        return Verdict(True, "The reader finds every piece by its hash, and uses all of them.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## All of it on one page

    You have now met everything that a trie consists of. In Python that does not care for speed it is short. This is how
    relaycast's module `reference` encodes a node, and how it finds the nodes that a proof needs. The fast engines are
    tested against it.

    `paths` maps what is left of each key's path to its value. Each function handles one node, and calls itself for the
    children. The small functions that they use do what their names say: `below` keeps the paths that begin with a
    nibble, `stored` turns a long value into its hash, and `reference` names a child, inline or by its hash.
    """)
    return


@app.cell
def _():
    Listing("\n".join(getsource(part) for part in (reference.encode, reference.touched)))
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Chapter 4 builds tries inside a trie, and lets parachains write into them.
    """)
    return


if __name__ == "__main__":
    app.run()
