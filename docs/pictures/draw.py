"""Draws the pictures of the concept pages, from runs and from the chapters: ``python docs/pictures/draw.py``.

Every figure in them is measured while they are drawn; a test draws them again and compares.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "walkthrough"))

import relaycast as rc
import relaycast_pallets as rp
import relaycast_trie as rt
import relaycast_xcm as rx
from runs_of_chapters import run_of
from trie_pictures import CHARACTER, Picture, framed

BLUE, YELLOW, GREEN, GREY = "#e3f2fd", "#fff3cd", "#e8f5e9", "#eceff1"
INK = "#37474f"

FROM_CHAPTERS = {
    "proof-in-the-trie": ("chapter_3_proofs", 0),
    "proof-alone": ("chapter_3_proofs", 1),
    "child-trie": ("chapter_4_child_tries", 1),
    "way-to-the-child-trie": ("chapter_4_child_tries", 2),
    "change": ("chapter_5_subscribing", 0),
    "cursor": ("chapter_6_budgets", 0),
}
"""A picture by the chapter that draws it, and its number there."""


def text(x: float, y: float, line: str, *, anchor: str = "middle", weight: str = "normal", fill: str = INK) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}" fill="{fill}">{escape(line)}</text>'
    )


def box(x: float, y: float, width: float, lines: Sequence[str], fill: str) -> str:
    """Draw a box with ``lines`` in it, the first one bold; its height follows from them."""
    height = 16 * len(lines) + 12
    drawn = [
        text(x + width / 2, y + 18 + 16 * index, line, weight="normal" if index else "bold")
        for index, line in enumerate(lines)
    ]
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height}" rx="5" fill="{fill}" stroke="#90a4ae"/>'
        f"{''.join(drawn)}"
    )


def arrow(x1: float, y1: float, x2: float, y2: float, label: str = "") -> str:
    """Draw an arrow, its ``label`` above its middle."""
    drawn = (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{INK}" stroke-width="1.4" '
        'marker-end="url(#head)"/>'
    )
    return drawn + (text((x1 + x2) / 2, (y1 + y2) / 2 - 6, label) if label else "")


HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>'
)


def wire() -> Picture:
    """Four actors, three blocks, and the bytes that pass between them."""
    net = rc.Network(seed=5)
    feed = net.publisher(2000).publish("price/dot", b"7.31")
    net.subscriber(3000, keys=[feed])
    net.run(blocks=2)
    collator = net.chains.collators[rx.ParaId(3000)]
    collation = collator.collate(net.chains.relay_chain.head)
    record = net.ledger.step()[0]
    message = len(rx.encode_versioned_xcm([rx.Publish(feed.key, b"7.31", 0)]))
    entry = len(rp.PublishedEntry(b"7.31", 0, 2).encode())
    pubsub = record.proof_bytes - record.static_bytes
    lanes = {"parachain 2000": 90, "relay chain": 340, "collator of 3000": 630, "parachain 3000": 900}
    drawn = [HEAD]
    for name, x in lanes.items():
        drawn.append(text(x, 18, name, weight="bold"))
        drawn.append(f'<line x1="{x}" y1="28" x2="{x}" y2="400" stroke="#cfd8dc" stroke-dasharray="4 3"/>')
    publisher, relay, middle, subscriber = lanes.values()
    for y, label in ((48, "block 1"), (128, "block 2"), (248, "block 3")):
        drawn.append(f'<line x1="0" y1="{y - 14}" x2="990" y2="{y - 14}" stroke="#eceff1"/>')
        drawn.append(text(4, y, label, anchor="start", fill="#546e7a"))
    drawn += [
        box(publisher - 75, 58, 150, ["price/dot = 7.31", "published"], BLUE),
        f'<line x1="{publisher + 30}" y1="102" x2="{publisher + 30}" y2="164" stroke="{INK}" stroke-width="1.4"/>',
        arrow(publisher + 30, 164, relay - 84, 164, f"Publish, {message} bytes"),
        box(
            relay - 84,
            134,
            168,
            ["child trie of 2000", f"+ entry, {entry} bytes", "its root: 32 bytes", "state root"],
            YELLOW,
        ),
        arrow(middle - 90, 268, relay + 3, 268, "prove these keys"),
        arrow(relay + 3, 296, middle - 90, 296, f"proof, {collation.collected.proof_bytes:,} bytes"),
        box(middle - 90, 258, 168, ["collects", "prunes", "remembers nothing"], GREY),
        arrow(middle + 78, 290, subscriber - 80, 290, f"{record.proof_bytes:,} bytes"),
        box(subscriber - 80, 258, 160, ["verifies against", "the state root", "on_data_updated", "“7.31”"], GREEN),
        text(middle + 120, 372, f"of {record.proof_bytes:,} bytes, {record.static_bytes:,} are proven with or without"),
        text(middle + 120, 390, f"pub-sub; the price took {pubsub}"),
    ]
    return framed("".join(drawn), 990, 404, "The way of a price from its publisher to the callback")


def publish_bytes() -> Picture:
    """The bytes of a ``Publish`` message, by what they mean."""
    key = rt.blake2_256(b"price/dot")
    data = rx.encode_versioned_xcm([rx.Publish(key, b"7.31", 50)])
    parts = [
        (data[:1], "version 5", GREY),
        (data[1:2], "1 instr.", GREY),
        (data[2:3], "Publish", BLUE),
        (data[3:35], "key: the hash of “price/dot”, 32 bytes", YELLOW),
        (data[35:36], "length", GREEN),
        (data[36:40], "value “7.31”", GREEN),
        (data[40:44], "ttl: 50 blocks", BLUE),
    ]
    return _strip(parts)


def entry_bytes() -> Picture:
    """The bytes of a published entry, by what they mean."""
    data = rp.PublishedEntry(b"7.31", 50, 100).encode()
    return _strip(
        [
            (data[:1], "length", GREEN),
            (data[1:5], "value “7.31”", GREEN),
            (data[5:9], "ttl: 50 blocks", BLUE),
            (data[9:], "when_inserted: 100", YELLOW),
        ]
    )


def _strip(parts: Sequence[tuple[bytes, str, str]]) -> Picture:
    drawn, x = [], 1.0
    for data, meaning, fill in parts:
        digits = data.hex(" ") if len(data) <= 6 else f"{data[:4].hex(' ')} … {data[-2:].hex(' ')}"
        width = max(len(digits), len(meaning)) * CHARACTER + 14
        drawn.append(f'<rect x="{x:g}" y="1" width="{width:g}" height="46" fill="{fill}" stroke="#90a4ae"/>')
        drawn.append(text(x + width / 2, 20, digits, weight="bold"))
        drawn.append(text(x + width / 2, 38, meaning))
        x += width
    return framed("".join(drawn), x + 1, 48, "Bytes, by what they mean")


def prune_and_verify() -> Picture:
    """One algorithm, twice: what the collator's run reads is what the chain's run is given."""
    steps = ["for each publisher:", "same child root? skip", "walk the paths of its keys", "same hash as before? stop"]
    drawn = [
        HEAD,
        text(170, 18, "collator, PRUNE", weight="bold"),
        text(640, 18, "block, VERIFY", weight="bold"),
        box(60, 34, 220, ["collected proof", "everything subscribed to"], GREY),
        arrow(170, 78, 170, 108),
        box(40, 110, 260, ["process_proof", *steps], BLUE),
        arrow(170, 202, 170, 232),
        box(60, 234, 220, ["pruned proof", "the nodes that were read"], YELLOW),
        arrow(280, 256, 530, 256, "inherent"),
        box(530, 234, 220, ["pruned proof", "found by hash, or not at all"], YELLOW),
        arrow(640, 232, 640, 202),
        box(510, 110, 260, ["process_proof", *steps], BLUE),
        arrow(640, 108, 640, 78),
        box(500, 34, 280, ["every node used? nothing left out?", "values, cache, cursor - or panic"], GREEN),
        text(405, 150, "the same code,"),
        text(405, 166, "the same order,"),
        text(405, 182, "the same budget"),
    ]
    return framed("".join(drawn), 800, 284, "The collator prunes by the algorithm that the block verifies by")


def budget() -> Picture:
    """How a block's proof of validity is shared out, under three policies and three loads."""
    mib = 1 << 20
    loads = {"light": (1, 1), "heavy": (5, 2), "full": (6, 6)}
    policies: dict[str, rp.Remaining | rp.CumulusSixths | rp.Floor] = {
        "Remaining(85)": rp.Remaining(85),
        "CumulusSixths()": rp.CumulusSixths(),
        "Floor(1 MiB)": rp.Floor(mib),
    }
    scale, left, y = 52.0, 190.0, 30.0
    drawn = [
        text(left + scale * at, 18, f"{at} MiB", fill="#546e7a")
        + f'<line x1="{left + scale * at:g}" y1="24" x2="{left + scale * at:g}" y2="292" stroke="#eceff1"/>'
        for at in range(0, 11, 2)
    ]
    for load, (downward, horizontal) in loads.items():
        drawn.append(text(4, y + 14, f"{load}: {downward} + {horizontal} MiB", anchor="start", weight="bold"))
        y += 20
        for name, policy in policies.items():
            usage = rp.PovUsage(10 * mib, (bytes(mib),) * downward, (bytes(mib),) * horizontal)
            share = policy.share_out(usage)
            drawn.append(text(left - 8, y + 13, name, anchor="end"))
            x = left
            for size, fill in (
                (share.downward_count * mib, "#90caf9"),
                (share.horizontal_count * mib, "#b39ddb"),
                (share.pubsub_bytes, "#81c784"),
            ):
                width = size / mib * scale
                drawn.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="16" fill="{fill}" stroke="#fff"/>')
                x += width
            y += 20
        y += 10
    for at, (name, fill) in enumerate(
        (("downward messages", "#90caf9"), ("horizontal messages", "#b39ddb"), ("left for pub-sub", "#81c784"))
    ):
        drawn.append(f'<rect x="{left + 180 * at:g}" y="{y:g}" width="12" height="12" fill="{fill}"/>')
        drawn.append(text(left + 180 * at + 18, y + 11, name, anchor="start"))
    return framed("".join(drawn), left + 10 * scale + 40, y + 20, "What a block holds under three policies")


DRAWN_HERE: dict[str, Callable[[], Picture]] = {
    "wire": wire,
    "publish-bytes": publish_bytes,
    "entry-bytes": entry_bytes,
    "prune-and-verify": prune_and_verify,
    "budget": budget,
}


def pictures() -> Iterator[tuple[str, str]]:
    """Yield the name of every picture with its SVG."""
    for name, draw in DRAWN_HERE.items():
        yield name, draw().svg
    results = {chapter: run_of(chapter)[0] for chapter, _ in FROM_CHAPTERS.values()}
    for name, (chapter, number) in FROM_CHAPTERS.items():
        yield name, [shown for shown in results[chapter] if hasattr(shown, "svg")][number].svg


if __name__ == "__main__":
    for name, svg in pictures():
        (HERE / f"{name}.svg").write_text(svg + "\n")
