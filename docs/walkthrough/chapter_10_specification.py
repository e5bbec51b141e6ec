"""Walkthrough, chapter 10: the specification as a program, and what happens if one rule changes."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="10. Read the specification", width="medium")

with app.setup:
    import inspect
    from types import ModuleType

    import marimo as mo

    import relaycast_trie as rt
    from relaycast_spec import broadcaster, proof_pass, scale, subscriber, tries, walk, xcm

    from lesson import Aid, Listing, Table, Verdict
    from trie_pictures import draw_trie


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 10. Read the specification

    Everything that the chapters before explained is also a program: `spec/relaycast_spec`, eight files of plain Python
    that need nothing but the standard library. Nothing in it is fast. Each rule is one function, with the scenario of
    RFC-0160 that it makes true beside it. This chapter follows one `Publish` through it, and then changes a rule.

    ## The message

    A parachain sends bytes. They decode into instructions, of which one is `Publish`:
    """)
    return


@app.cell
def _():
    key = scale.blake2_256(b"price/dot")
    message = xcm.encode_message([{"Publish": {"key": key, "value": b"7.31", "ttl": 100}}])
    Table(
        ("part", "bytes"),
        [
            ("version 5, one instruction, Publish", message[:3]),
            ("key", message[3:35]),
            ("length and value", message[35:40]),
            ("time to live", message[40:]),
        ],
    )
    return key, message


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## The broadcaster stores it

    The relay chain's pallet takes the message in relay block 1,000. Parachain 1000 is a system parachain, so it need
    not register. Limits are generous here. What it stores is a child trie with one leaf:
    """)
    return


@app.cell
def _():
    config = broadcaster.Config(
        max_publishers=10,
        max_stored_keys=10,
        max_value_length=1_024,
        max_total_storage_size=10_000,
        max_ttl_scans_per_idle=100,
        max_publish_instructions=16,
        publisher_deposit=0,
        existential_deposit=1,
        db_weight={"read": 25_000_000, "write": 100_000_000},
    )

    def published(room: ModuleType, sent: bytes) -> broadcaster.Broadcaster:
        pallet: broadcaster.Broadcaster = room.Broadcaster(config, [], [])
        pallet.block = 1_000
        pallet.receive(1000, sent)
        return pallet

    return (published,)


@app.cell
def _(message, published):
    relay = published(broadcaster, message)
    db, root = rt.build_database(relay.published(1000), state_version=rt.StateVersion.V1)
    draw_trie(db, root)
    return db, relay, root


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The picture is drawn by relaycast's engine from the same entries. Two programs that share no line come to one root,
    and that is what the specification is for: whatever relaycast computes fast is held against it.
    """)
    return


@app.cell
def _(relay, root):
    Table(("computed by", "root of the child trie"), [("specification", *relay.roots().values()), ("engine", root)])
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## The subscriber's block

    A parachain subscribes to this key. Its collator collects all nodes on the way. `prune` keeps those that the pass
    reads, `verify` demands that the block has exactly these, and `apply` calls back:
    """)
    return


@app.cell
def _(key, relay):
    name = tries.child_trie_name(1000)
    child_root, child_nodes = tries.trie(relay.published(1000))
    relay_root, top_nodes = tries.trie(relay.state.entries | {tries.CHILD_STORAGE + name: child_root})
    collected = [*top_nodes.values(), *child_nodes.values()]
    block = proof_pass.BlockInput(
        config=proof_pass.Config(max_trie_depth=8, max_value_length=1_024, read_ref_time=25_000_000),
        policies=proof_pass.Policies(),
        subscriptions=[(1000, [key])],
        state=[],
        relay_root=relay_root,
        relay_parent_number=1_040,
        seed=b"",
        has_messages=False,
        budget={"ref_time": 10**12, "proof_size": 100_000},
        static_keys=[],
    )
    proof = proof_pass.prune(block, collected)
    pallet = subscriber.Subscriber(block, subscriber.verify(block, proof))
    ((_, _, value, ttl_state),) = pallet.apply()
    assert ttl_state is not None
    Table(
        ("", "is"),
        [
            ("nodes collected", len(collected)),
            ("nodes in the block", len(proof)),
            ("value", value),
            ("time to live", str(scale.decode("TtlState", ttl_state))),
        ],
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The entry was written by block 1,000 for 100 blocks, and the block reads the state of relay block 1,040: 60 are
    left.

    ## One rule

    This is the rule for the end of an entry. The scenario *TTL Expiration / Key expires* says: published at block 1,000
    with a time to live of 100, gone at block 1,100.
    """)
    return


@app.cell
def _():
    Listing(inspect.getsource(broadcaster.Broadcaster.is_expired))
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    `changed` runs a file of the specification with pieces of its text replaced. The first line is the rule as it is,
    the second a rule that differs in one character:
    """)
    return


@app.cell
def _():
    def changed(room: ModuleType, rules: dict[str, str]) -> ModuleType:
        source = inspect.getsource(room)
        for rule, other in rules.items():
            assert source.count(rule) == 1
            source = source.replace(rule, other)
        copy = ModuleType(room.__name__)
        exec(source, vars(copy))  # noqa: S102 - a file of the specification
        return copy

    late = changed(broadcaster, {"self.block >= expiry": "self.block > expiry"})
    return changed, late


@app.cell
def _(late, message, published):
    def is_there(room: ModuleType, number: int) -> bool:
        """Return whether the entry is still there after relay block ``number``."""
        pallet = published(room, message)
        pallet.block = number
        pallet.on_idle(10**12)
        return bool(pallet.published(1000))

    Table(
        ("rule", *(f"after block {number:,}" for number in (1_099, 1_100))),
        [
            (rule, *("there" if is_there(room, number) else "gone" for number in (1_099, 1_100)))
            for rule, room in (("block >= expiry", broadcaster), ("block > expiry", late))
        ],
    )
    return (is_there,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The scenario fails under the second rule, and the conformance vectors of `broadcaster` notice it as well. An
    implementation in any language can be checked in the same way: `relaycast vectors export` writes them.

    Other rules have a price. `walk` follows one path in the old and in the new trie, and stops at the first node that
    is the same in both. Here is a trie of four keys, after one of them got a new value:
    """)
    return


@app.cell
def _():
    before = {bytes([digit]) * 32: b"before" for digit in (0x11, 0x12, 0x21, 0x22)}
    after = before | {bytes([0x22]) * 32: b"after"}
    old_root, old_nodes = tries.trie(before)
    new_root, new_nodes = tries.trie(after)
    drawn, drawn_root = rt.build_database(after, state_version=rt.StateVersion.V1)
    draw_trie(drawn, drawn_root)
    return after, before, new_nodes, new_root, old_nodes, old_root


@app.cell
def _(after, changed, new_nodes, new_root, old_nodes, old_root):
    def nodes_read(room: ModuleType) -> int:
        """Return how many nodes of the new trie a walk along all keys reads."""
        read: set[bytes] = set()

        def read_new(place: tries.Place) -> tries.Node:
            read.add(place.reference)
            return tries.Node.decode(new_nodes.get(place.reference, place.reference))

        def read_old(place: tries.Place) -> tries.Node:
            return tries.Node.decode(old_nodes.get(place.reference, place.reference))

        for path in (each.hex() for each in after):
            room.walk(tries.Place(path, new_root), tries.Place(path, old_root), read_new, read_old)
        return len(read)

    never = {
        "if new.reference == old.reference and new.above <= old.above:": "if False:",
        "if new.below(new_node) == old.below(old_node) and new.depth <= old.depth:": "if False:",
    }
    Table(
        ("walk", "nodes of the new trie that are read"),
        [("as it is", nodes_read(walk)), ("never stops early", nodes_read(changed(walk, never)))],
    )
    return (nodes_read,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    What is read must be in the proof, and is paid for. So the rule that stops is what makes a block with one new value
    small.

    ## Exercise: one block late

    Go back to the rule `block > expiry`. The entry was published at block 1,000 with a time to live of 100. With which
    relay block does `on_idle` remove it under this rule?

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
        "The entry ends at block 1,000 + 100. The rule asks for a block that is larger than this number.",
        1101,
        "1,100 is not larger than 1,100; the next block is.",
    )
    aid
    return (aid,)


@app.cell(hide_code=True)
def _(answer, is_there, late):
    def check(number: object) -> Verdict:
        if type(number) is not int or not 1_000 <= number <= 10_000:
            return Verdict(False, "The answer is the number of a relay block, such as 1,050.")
        if is_there(late, number):
            return Verdict(False, f"After block {number:,} the entry is still there: the rule does not hold yet.")
        if not is_there(late, number - 1):
            return Verdict(False, f"After block {number:,} it is gone, but an earlier block removed it already.")
        return Verdict(True, "The scenario asks for one block earlier, so this rule breaks it.")

    verdict = check(answer)
    verdict
    return check, verdict


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Read on in `spec/relaycast_spec`, from `scale.py` to `messages.py`. Where RFC-0160 is silent the files say
    `DECISION`, and name the policy if there is a choice.
    """)
    return


if __name__ == "__main__":
    app.run()
