"""A subscriber's pass over a proof: sections 9.1 to 9.6 of the suite's README, with the policies of section 10."""

from itertools import groupby
from typing import Any

from conformance.scale import Refused, Storage, blake2, decode, encode, refuse
from conformance.tries import CHILD, Node, Place, Store, lookup, values
from conformance.xcm import ZERO, Weight, fits

Spot = tuple[int, bytes]
Side = Place | Node | None


def plus(*weights: Weight) -> Weight:
    return {name: sum(weight[name] for weight in weights) for name in ZERO}


class Publisher:
    """The state of a publisher during a pass (9.2)."""

    def __init__(self, block: "Pass", para: int) -> None:
        self.para, self.keys = para, sorted(block.wanted[para])
        self.digest = blake2(b"".join(self.keys))
        digest, known = block.digests.get(para, bytes(32)), block.get("SubscribedKeys", para) or []
        ranges, root = block.get("UnfinishedPublishers", para), block.roots.get(para)
        other = "ADDED" if set(known) <= set(self.keys) else "REMOVED"
        self.change = {self.digest: "NONE", bytes(32): "NEW"}.get(digest, other)
        self.root = root if self.change in ("NONE", "ADDED") else None
        self.has_bases = self.change == "ADDED" or (self.change == "NONE" and ranges is not None)

        def base(key: bytes) -> bytes | None:
            return next((base for first, last, base in ranges or () if first <= key <= last), root)

        based = {"NONE": self.keys, "ADDED": known}.get(self.change, [])
        self.bases = [base(key) if key in based else None for key in self.keys]
        former, bitmap = self.keys if digest == self.digest else known, block.get("DeliveredKeys", para)
        bits = [
            base(key) is not None if bitmap is None else bitmap[n // 8] >> n % 8 & 1 for n, key in enumerate(former)
        ]
        self.delivered = {key for key, bit in zip(former, bits, strict=True) if bit} & set(self.keys)
        cached = [] if self.change == "REMOVED" else block.under("CachedTrieNodes", para)
        self.cache = {key[-32:]: decode("bytes", block.entries[key]) for key in cached}
        self.paid, self.fresh, self.dealt = set[bytes](), Store(), set[int]()
        self.told = dict[bytes, bytes | None]()  # the new entries, and nothing for deleted keys
        self.first: int | None = None  # the key with which its part began, once its child root is read
        self.new: bytes | None = None
        self.disabled = False

    def ranges(self, bases: list[bytes | None]) -> list[tuple[bytes, bytes, bytes | None]]:
        """Give the runs of keys whose base is not the publisher's root."""
        runs = groupby(zip(self.keys, bases, strict=True), lambda pair: pair[1])
        spans = [(base, [key for key, _ in run]) for base, run in runs]
        return [(keys[0], keys[-1], base) for base, keys in spans if base != self.root]

    def changed(self) -> bool:
        """Tell whether its child root was read and there is something to do."""
        return self.first is not None and (self.new is None or self.new != self.root or self.has_bases)


class Pass(Storage):
    """The pass of one block, with the nodes that it is given."""

    def __init__(self, v: Any, nodes: list[bytes]) -> None:
        super().__init__(v["before"])
        self.v, self.config, self.policies = v, v["config"], v.get("policies", {})
        self.given, self.nodes, self.accessed = nodes, {blake2(node): node for node in nodes}, set[bytes]()
        longest = self.config["max_value_length"]
        self.most = max(len(encode("c32", longest)) + longest + 8, 750)
        self.consumed, self.bytes_read, self.events, self.limited = ZERO, 0, list[bytes](), False
        self.declared = {(para, key): weight for para, key, weight in v.get("callback_weights", ())}
        self.used = self.declared | {(para, key): weight for para, key, weight in v.get("used_weights", ())}
        self.roots = dict(self.get("PreviousPublishedDataRoots") or ())
        self.digests = dict(self.get("SubscribedKeysDigests") or ())
        self.wanted: dict[int, set[bytes]] = {}
        for para, keys in v["subscriptions"]:
            self.wanted |= {para: self.wanted.get(para, set()) | set(keys)} if keys else {}
        stored = self.get("RelayProofProcessingCursor")
        self.seed = (self.get("PublisherOrderSeed") if stored else None) or v["seed"]
        there = [para for para in self.wanted if self.get("DisabledPublishers", para) is None]
        self.publishers = [Publisher(self, para) for para in sorted(there, key=self.order)]
        work = [((one.para, key), one, number) for one in self.publishers for number, key in enumerate(one.keys)]
        spots = [spot for spot, _, _ in work]
        cursor, owed = (spot if stored and spot in spots else None for spot in (stored, self.get("OwedKey")))
        self.cursor, self.owed = cursor or owed, owed if cursor else None
        self.begin = self.cursor if v["crowded"] or self.owed is None else self.owed
        at = spots.index(self.begin) if self.begin else 0
        self.work = work[at:] + work[:at]

    def order(self, para: int) -> tuple[bool, bytes]:
        shuffled = para >= 2000 and self.policies.get("order") != "numeric"
        return para >= 2000, blake2(self.seed + encode("u32", para)) if shuffled else para.to_bytes(4, "big")

    def run(self) -> None:
        """Read the static keys, then what changed of the wanted keys (9.5)."""
        values(self.nodes, self.accessed, self.v["relay_root"], sorted(set(self.v["static_keys"])))
        self.stopped_at: Spot | None = None
        for spot, publisher, number in self.work:
            try:
                self.deal(publisher, number)
            except Refused as reason:
                refuse(reason.args[0] not in ("too deep", "stop"), *reason.args)
                publisher.disabled |= reason.args[0] == "too deep"
                if reason.args[0] == "stop":
                    self.stopped_at = spot
                    break
            publisher.dealt.add(number)
        self.met = [one for one in dict.fromkeys(publisher for _, publisher, _ in self.work) if one.changed()]
        self.stuck = self.begin is not None and self.begin == self.stopped_at
        self.next = self.next_cursors(self.stopped_at) if self.stopped_at else (None, None)

    def next_cursors(self, stop: Spot) -> tuple[Spot | None, Spot | None]:
        """Find where the next passes begin (9.4)."""
        spots = [spot for spot, _, _ in self.work]
        end = spots[min(1, len(spots) - 1)] if self.stuck else stop
        other = self.cursor if self.begin == self.owed else self.owed
        if self.owed is None or other is None:
            return end, self.begin if self.stuck and self.v["crowded"] and end != self.begin else None
        if other == end or spots.index(other) < spots.index(stop):
            return end, None
        return (other, end) if self.begin == self.owed else (end, other)

    def charged(self, size: int) -> Weight:
        """Give what the pass has consumed after a read (9.3)."""
        read = {"ref_time": self.config["read_ref_time"], "proof_size": min(size, self.most)}
        return plus(self.consumed, read)

    def pay(self, size: int, structure: bool = True) -> None:
        free = structure and self.policies.get("metering") == "values-only"
        refuse(not free and not fits(self.charged(size), self.v["budget"]), "stop")
        self.consumed, self.bytes_read = self.consumed if free else self.charged(size), self.bytes_read + size

    def relay(self, wanted: bytes, structure: bool = True) -> bytes:
        """Read a node or value of the proof."""
        refuse(wanted not in self.nodes, "stop")
        if wanted not in self.accessed:
            self.pay(len(self.nodes[wanted]), structure)
            self.accessed.add(wanted)
        return self.nodes[wanted]

    def read(self, publisher: Publisher, place: Place, new: bool) -> Node:
        """Read a node of the new trie, from the cache or the proof, or of the old one, from the cache alone (9.6)."""
        wanted = place.reference
        if len(wanted) != 32:
            return Node.of(wanted)
        refuse(new and place.above == self.config["max_trie_depth"], "too deep")
        if wanted in publisher.cache:
            if wanted not in publisher.paid:
                self.pay(len(publisher.cache[wanted]))
                publisher.paid.add(wanted)
            return Node.of(publisher.cache[wanted])
        if new:
            publisher.fresh[wanted] = self.relay(wanted)
        return Node.of(publisher.fresh[wanted]) if new else Node()

    def deal(self, publisher: Publisher, number: int) -> None:
        """Deal with a key (9.5)."""
        if publisher.first is None:
            node = lookup(self.v["relay_root"], CHILD + b"pubsub" + encode("u32", publisher.para), self.relay)
            refuse(node.value is not None and (node.hashed or len(node.value) != 32), "InvalidChildRoot")
            publisher.new, publisher.first = node.value, number
        key, base = publisher.keys[number], publisher.bases[number]
        if publisher.new is None:
            self.note(publisher, key, None)
        elif publisher.changed() and not publisher.disabled:
            known = base is not None and self.policies.get("callback") != "all-keys"
            self.walk(publisher, key, Place(key.hex(), publisher.new), Place(key.hex(), base or b"") if known else None)

    def walk(self, publisher: Publisher, key: bytes, new: Side, old: Side) -> None:
        """Follow a key down the new and the old trie, side by side, as far as they differ (9.6)."""
        while isinstance(new, Place) or isinstance(old, Place):
            new_left, old_left = (len(side.path) if isinstance(side, Place) else -1 for side in (new, old))
            if isinstance(new, Place) and isinstance(old, Place) and new_left == old_left:
                if new.reference == old.reference and new.above <= old.above:
                    return
                n, o = self.read(publisher, new, True), self.read(publisher, old, False)
                if Node() in (n, o) or n.partial != o.partial or bool(n.children) != bool(o.children):
                    new = new.below(n)
                    continue
                apart = new.below(n) != old.below(o) or new.down_to() > old.down_to()
                if not new.path.startswith(n.partial) or not apart:
                    return
                new, old = new.below(n), old.below(o)
            elif isinstance(new, Place) and new_left > old_left:
                new = new.below(self.read(publisher, new, True))
            elif isinstance(old, Place):
                old = old.below(self.read(publisher, old, False))
        was, is_now = (end and (end.value if end.hashed else blake2(end.value or b"")) for end in (old, new))
        if new is None or was != is_now:
            self.note(publisher, key, new)

    def callback_weight(self) -> Weight:
        """Add up what the callbacks weigh, as they are declared (9.12)."""
        told = [(one.para, key) for one in self.publishers if not one.disabled for key in one.told]
        return plus(*(self.declared.get(spot, ZERO) for spot in told))

    def note(self, publisher: Publisher, key: bytes, end: Node | None) -> None:
        """Note a key with a new value, or one that was delivered and is absent now."""
        if end is None and (self.policies.get("deletion") != "told" or key not in publisher.delivered):
            return
        weight = plus(self.callback_weight(), self.declared.get((publisher.para, key), ZERO))
        self.limited = bool(self.declared) and not fits(weight, self.config["callback_limit"])
        refuse(self.limited, "stop")
        value = end and end.value
        publisher.told[key] = self.relay(value, structure=False) if end and end.hashed and value else value

    def summary(self) -> dict[str, Any]:
        (cursor, owed), place = self.next, {"complete": self.stopped_at is None, "stopped_at": self.stopped_at}
        weights = {"consumed": self.consumed, "callback_weight": self.callback_weight()}
        return {**weights, **place, "cursor": cursor, "owed": owed}
