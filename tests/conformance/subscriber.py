"""A block of a subscriber, its pass and what the pass writes: sections 9 and 10 of the suite's README."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conformance.scale import TYPES, Refused, blake2, blake_concat, decode, encode, prefix, refuse, u32
from conformance.tries import INVALID, Checks, Store, Weight, descend, fits, pairs, put, values
from conformance.walk import Publisher, Stop, TooDeep

TYPES |= {
    "PreviousPublishedDataRoots": "*para:u32,value:bytes",
    "SubscribedKeysDigests": "*para:u32,value:h32",
    "SubscribedKeys": "*h32",
    "UnfinishedPublishers": "*first:h32,last:h32,base:?h32",
    "SharedTrieNodes": "*hash:h32,count:c32",
    "RelayProofProcessingCursor": "para:u32,key:h32",
    "OwedKey": "para:u32,key:h32",
    "CachedTrieNodes": "bytes",
    "PublisherOrderSeed": "bytes",
    "DeliveredKeys": "bytes",
    "DisabledPublishers": "h1",
}
ZERO = {"ref_time": 0, "proof_size": 0}
Spot = tuple[int, bytes]
OF_A_PUBLISHER = ("UnfinishedPublishers", "CachedTrieNodes", "SharedTrieNodes")


class Subscriber:
    """One block, with the nodes that it is given."""

    def __init__(self, v: Any, nodes: list[bytes]) -> None:
        self.v, self.config, self.entries, self.policies = v, v["config"], dict(v["before"]), v.get("policies", {})
        self.given, self.nodes, self.accessed = nodes, {blake2(node): node for node in nodes}, set[bytes]()
        longest = self.config["max_value_length"]
        self.most = max(len(encode("c32", longest)) + longest + 8, 750)
        self.ref_time = self.proof_size = self.bytes_read = 0
        self.stopped_at: Spot | None = None
        self.stuck = self.limited = False
        self.callbacks = {(para, key): weight for para, key, weight in v.get("callback_weights", ())}
        self.used = {(para, key): weight for para, key, weight in v.get("used_weights", ())}
        self.roots, self.digests = self.map("PreviousPublishedDataRoots"), self.map("SubscribedKeysDigests")
        self.wanted: dict[int, set[bytes]] = {}
        for para, keys in v["subscriptions"]:
            self.wanted.setdefault(para, set()).update(keys)
        self.wanted = {para: keys for para, keys in self.wanted.items() if keys}
        cursor = self.get("RelayProofProcessingCursor")
        self.seed = (self.get("PublisherOrderSeed") if cursor else None) or v["seed"]
        there = [para for para in self.wanted if self.at("DisabledPublishers", para) not in self.entries]
        self.publishers = [Publisher(self, para) for para in sorted(there, key=self.order)]
        self.plan(cursor, self.get("OwedKey") if cursor else None)

    def order(self, para: int) -> tuple[bool, bytes]:
        shuffled = para >= 2000 and self.policies.get("order") != "numeric"
        return para >= 2000, blake2(self.seed + u32(para)) if shuffled else para.to_bytes(4, "big")

    def at(self, item: str, *keys: int | bytes) -> bytes:
        raw = (key if isinstance(key, bytes) else u32(key) for key in keys)
        return prefix("Subscriber", item) + b"".join(blake_concat(key) for key in raw)

    def get(self, item: str, *keys: int) -> Any:
        data = self.entries.get(self.at(item, *keys))
        return None if data is None else decode(item, data)

    def map(self, item: str) -> dict[int, bytes]:
        return {one["para"]: one["value"] for one in self.get(item) or ()}

    def put(self, item: str, value: Any, *keys: int | bytes) -> None:
        put(self.entries, self.at(item, *keys), None if value is None else encode(item, value))

    def under(self, item: str, para: int) -> Store:
        return {key: value for key, value in self.entries.items() if key.startswith(self.at(item, para))}

    def plan(self, *stored: Any) -> None:
        """Find where the pass begins, and each publisher's range of keys in order (9.4)."""
        index = {publisher.para: n for n, publisher in enumerate(self.publishers)}
        spots = [(one["para"], one["key"]) if one else (0, b"") for one in stored]
        cursor, owed = (spot if spot[0] in index and spot[1] in self.wanted[spot[0]] else None for spot in spots)
        self.cursor: Spot | None = cursor or owed
        self.owed: Spot | None = owed if cursor else None
        self.begin = self.cursor if self.v["crowded"] or self.owed is None else self.owed
        self.work = [(publisher, 0, len(publisher.keys)) for publisher in self.publishers]
        if self.begin:
            n, (first, _, size) = index[self.begin[0]], self.work[index[self.begin[0]]]
            i = first.keys.index(self.begin[1])
            self.work = [(first, i, size), *self.work[n + 1 :], *self.work[:n], *[(first, 0, i)] * (i > 0)]

    def run(self) -> None:
        """Read the static keys, then what changed of the wanted keys."""
        values(self.nodes, self.accessed, self.v["relay_root"], sorted(set(self.v["static_keys"])))
        for publisher, low, high in self.work:
            try:
                publisher.deal(low, high)
            except TooDeep:
                publisher.disabled = True
            except Stop:
                publisher.stopped = publisher.at
                self.stopped_at = publisher.para, publisher.keys[publisher.at]
            publisher.dealt.update(range(low, high if publisher.stopped is None else publisher.stopped))
            if self.stopped_at:
                break
        self.met = [publisher for publisher in dict.fromkeys(part[0] for part in self.work) if publisher.changed()]
        self.next_cursors()

    def next_cursors(self) -> None:
        """Find where the next passes begin."""
        begin, stop, owed = self.begin, self.stopped_at, self.owed
        self.next: tuple[Spot | None, Spot | None] = (None, None)
        if stop is None:
            return
        keys = [(publisher.para, key) for publisher, low, high in self.work for key in publisher.keys[low:high]]
        self.stuck = stop == begin
        end = keys[min(1, len(keys) - 1)] if self.stuck else stop
        other = self.cursor if begin == owed else owed
        if owed is None or other is None:
            self.next = end, begin if self.stuck and self.v["crowded"] and end != begin else None
        elif other == end or keys.index(other) < keys.index(stop):
            self.next = end, None
        else:
            self.next = (other, end) if begin == owed else (end, other)

    def can_consume(self, ref_time: int, proof_size: int) -> bool:
        return fits(
            {"ref_time": self.ref_time + ref_time, "proof_size": self.proof_size + proof_size}, self.v["budget"]
        )

    def pay(self, size: int, structure: bool = True) -> None:
        free = structure and self.policies.get("metering") == "values-only"
        ref_time, proof_size = (0, 0) if free else (self.config["read_ref_time"], min(size, self.most))
        if not self.can_consume(ref_time, proof_size):
            raise Stop
        self.ref_time, self.proof_size = self.ref_time + ref_time, self.proof_size + proof_size
        self.bytes_read += size

    def told_weight(self) -> Weight:
        """Add up what the callbacks weigh, as they are declared (9.12)."""
        weights = [weight for publisher in self.publishers if not publisher.disabled for weight in publisher.weights]
        return {name: sum(weight[name] for weight in weights) for name in ZERO}

    def callback_weight(self, para: int, key: bytes) -> Weight:
        """Give what a callback is declared to weigh, if that fits."""
        weight: Weight = self.callbacks.get((para, key), ZERO)
        total = {name: weight[name] + told for name, told in self.told_weight().items()}
        self.limited = bool(self.callbacks) and not fits(total, self.config["callback_limit"])
        if self.limited:
            raise Stop
        return weight

    def relay(self, wanted: bytes, structure: bool = True) -> bytes:
        """Read a node or value of the proof."""
        if wanted not in self.nodes:
            raise Stop
        if wanted not in self.accessed:
            self.pay(len(self.nodes[wanted]), structure)
            self.accessed.add(wanted)
        return self.nodes[wanted]

    def summary(self) -> dict[str, Any]:
        consumed = {"ref_time": self.ref_time, "proof_size": self.proof_size}
        out = {"consumed": consumed, "complete": self.stopped_at is None, "stopped_at": self.stopped_at}
        out |= {"callback_weight": self.told_weight()} if "callback_weights" in self.v else {}
        return out | dict(zip(("cursor", "owed"), self.next, strict=True))

    def verify(self) -> None:
        refuse(len(self.nodes) < len(self.given), "DuplicateNode")
        self.run()
        if unused := sorted(set(self.nodes) - self.accessed):
            raise Refused("UnusedNodes", {"hashes": unused})
        if self.stopped_at and not self.limited and self.can_consume(self.config["read_ref_time"], self.most):
            left = {name: self.v["budget"][name] - used for name, used in self.summary()["consumed"].items()}
            place = dict(zip(("publisher", "key"), self.stopped_at, strict=True))
            raise Refused("IncompleteBelowLimit", place | {"remaining": left})

    def forget(self, para: int, items: Iterable[str]) -> None:
        self.roots.pop(para, None)
        for key in [key for item in items for key in self.under(item, para)]:
            del self.entries[key]

    def settle(self) -> None:
        """Write the two maps."""
        for item, entries in (("PreviousPublishedDataRoots", self.roots), ("SubscribedKeysDigests", self.digests)):
            self.put(item, [{"para": para, "value": entries[para]} for para in sorted(entries)] or None)

    def write(self) -> tuple[list[Any], list[bytes]]:
        """Write what VERIFY leaves (9.7); give the callbacks and the events."""
        events, finished = [], {}
        self.follow_subscriptions()
        for publisher in self.met:
            para, new = publisher.para, publisher.new
            if new is None:
                self.forget(para, OF_A_PUBLISHER)
            elif publisher.disabled:
                self.put("DisabledPublishers", b"\0", para)
                events.append(b"\4" + u32(para) + b"\0")  # TrieDepthExceeded
            elif len(publisher.dealt) == len(publisher.keys):
                self.roots[para] = finished[para] = new
                self.finish(publisher, new)
            else:
                self.interrupt(publisher, new)
        self.roots = finished if self.policies.get("root_commit") == "forget-unchanged" else self.roots
        self.settle()
        for item, spot in zip(("RelayProofProcessingCursor", "OwedKey"), self.next, strict=True):
            self.put(item, spot and dict(zip(("para", "key"), spot, strict=True)))
        self.put("PublisherOrderSeed", self.seed if self.stopped_at else None)
        if self.stuck and self.begin:
            place, weight = u32(self.begin[0]) + self.begin[1], self.callbacks.get(self.begin, ZERO)
            limit = b"\n" + place + encode("Weight", weight) + encode("Weight", self.config.get("callback_limit", ZERO))
            events.append(limit if self.limited else b"\2" + place + u32(self.bytes_read))
        told = [one for publisher in self.met if not publisher.disabled for one in self.told(publisher)]
        events += [event for _, some in told for event in some]
        return [callback for callback, _ in told if callback], events

    def follow_subscriptions(self) -> None:
        """Write what was delivered and what is subscribed to (9.11, step 0; 9.7, step 1)."""
        for publisher in self.publishers if self.policies.get("deletion") == "told" else ():
            self.note_delivered(publisher)
        for para in [para for para in self.digests if para not in self.wanted]:
            del self.digests[para]
            self.forget(para, ("SubscribedKeys", "UnfinishedPublishers", "DeliveredKeys"))
        for publisher in self.publishers:
            if publisher.change != "NONE":
                self.digests[publisher.para] = publisher.digest
                self.put("SubscribedKeys", publisher.keys, publisher.para)
            if publisher.change == "REMOVED":
                self.forget(publisher.para, OF_A_PUBLISHER)
            if publisher.change == "ADDED":
                self.put("UnfinishedPublishers", publisher.ranges(), publisher.para)

    def told(self, publisher: Publisher) -> Iterable[tuple[Any, list[bytes]]]:
        """Give a publisher's callbacks with their events (9.7, step 5)."""
        para = publisher.para
        for key, data in publisher.changes + [(key, b"") for key in publisher.deleted]:
            declared = self.callbacks.get((para, key), ZERO)
            used = self.used.get((para, key), declared)
            over = b"\x0b" + u32(para) + key + encode("Weight", declared) + encode("Weight", used)
            after, entry = [] if fits(used, declared) else [over], decoded(data)
            if key in publisher.deleted:
                yield [para, key, None, None], [b"\t" + u32(para) + key, *after]
            elif entry is None:
                yield None, [b"\1" + u32(para) + key]
            else:
                left = entry["when_inserted"] + entry["ttl"] - self.v["relay_parent_number"]
                state = b"\0" if not entry["ttl"] else b"\2" if left <= 0 else b"\1" + u32(min(left, 2**32 - 1))
                event = b"\0" + u32(para) + key + u32(len(entry["value"]))
                yield [para, key, entry["value"], state], [event, *after]

    def note_delivered(self, publisher: Publisher) -> None:
        """Write the bitmap of the keys that were delivered (9.11, step 0)."""
        told, met = publisher.delivered, publisher in self.met and not publisher.disabled
        known = publisher.root is not None or publisher.bases is not None
        noted = publisher.changes or publisher.deleted or not known
        if publisher.change == "NONE" and not (publisher in self.met and noted):
            return
        if met:
            known = publisher.new is not None
            told = told | {key for key, data in publisher.changes if decoded(data)} - set(publisher.deleted)
            told -= set(publisher.deleted)
        bits = sum(1 << n for n, key in enumerate(publisher.keys) if key in told)
        bitmap = bits.to_bytes((len(publisher.keys) + 7) // 8, "little")
        self.put("DeliveredKeys", bitmap if told or known else None, publisher.para)

    def keep(self, publisher: Publisher, stored: Store, new: Store) -> Store:
        """Make these the publisher's cached nodes; new ones are kept up to a size."""
        most = 0 if self.policies.get("cache") == "none" else int(self.policies.get("max_cached_node", 750))
        kept = stored | {wanted: node for wanted, node in new.items() if len(node) <= most}
        for wanted in publisher.cache | kept:
            self.put("CachedTrieNodes", kept.get(wanted), publisher.para, wanted)
        return kept

    def finish(self, publisher: Publisher, new: bytes) -> None:
        nodes = publisher.cache | publisher.fresh
        places = marked(((path, new) for path in publisher.paths), nodes)
        kept = self.keep(publisher, {}, {wanted: nodes[wanted] for wanted in places})
        counts = [{"hash": wanted, "count": len(places[wanted])} for wanted in sorted(kept) if len(places[wanted]) > 1]
        self.put("SharedTrieNodes", counts or None, publisher.para)
        self.put("UnfinishedPublishers", None, publisher.para)

    def interrupt(self, publisher: Publisher, new: bytes) -> None:
        had, stored, stopped = publisher.bases, publisher.cache, publisher.stopped
        publisher.bases = [new if n in publisher.dealt else base for n, base in enumerate(publisher.all_bases())]
        at_once = self.policies.get("root_commit") == "after-first-key" and new != publisher.root
        self.roots |= {publisher.para: new} if at_once else {}
        self.put("UnfinishedPublishers", None if at_once else publisher.ranges(), publisher.para)
        if had is not None and not 0 < publisher.first < (publisher.first if stopped is None else stopped):
            places = marked(zip(publisher.paths, publisher.bases, strict=True), stored | publisher.fresh)
            stored = {wanted: node for wanted, node in stored.items() if wanted in places}
        self.keep(publisher, stored, publisher.fresh)

    def call(self, name: str, para: int, events: list[bytes]) -> str:
        """Make a call by root after the pass (9.9); give its result."""
        if name == "clear_stored_roots":
            if para not in self.roots:
                return "PublisherRootNotFound"
            self.forget(para, ("UnfinishedPublishers",))
        elif name == "enable_publisher":
            if self.entries.pop(self.at("DisabledPublishers", para), None) is None:
                return "PublisherNotDisabled"
        elif not self.clear_cache(para):
            return "NoCachedNodes"
        self.settle()
        event = {"clear_stored_roots": b"\3", "enable_publisher": b"\5", "clear_publisher_cache": b"\6"}[name]
        events.append(event + u32(para))
        return "ok"

    def clear_cache(self, para: int) -> bool:
        remembers = self.policies.get("deletion") == "told" and para in self.digests
        items = OF_A_PUBLISHER if remembers else (*OF_A_PUBLISHER, "SubscribedKeys", "DeliveredKeys")
        digest = self.digests.get(para, bytes(32))
        if para not in self.roots and digest == bytes(32) and not any(self.under(item, para) for item in items):
            return False
        self.forget(para, items)
        self.digests = {p: d for p, d in self.digests.items() if p != para} | ({para: bytes(32)} if remembers else {})
        stored = [self.get("RelayProofProcessingCursor"), self.get("OwedKey")]
        cursor, owed, *_ = *(spot for spot in stored if spot and spot["para"] != para), None, None
        self.put("RelayProofProcessingCursor", cursor)
        self.put("OwedKey", owed)
        if cursor is None:
            self.put("PublisherOrderSeed", None)
        return True


def decoded(data: bytes) -> Any:
    """Give the entry that these bytes are, if they are one."""
    try:
        return decode("Entry", data)
    except Refused:
        return None


def marked(walks: Iterable[tuple[str, bytes | None]], nodes: Store) -> dict[bytes, set[str]]:
    """Give the places of the nodes that stand on the paths under the roots."""
    places: dict[bytes, set[str]] = {}
    for path, root in walks:
        for depth, reference, _ in descend(root, path, nodes.get) if root else ():
            if len(reference) == 32:
                places.setdefault(reference, set()).add(path[:depth])
    return places


def fill(lengths: list[int], left: int, hashed: int) -> tuple[int, int]:
    """Give how many messages fit in full, and what is left (9.10)."""
    left, full = left - hashed * len(lengths), 0
    while full < len(lengths) and (not full or lengths[full] - hashed <= left):
        left, full = left - lengths[full] + hashed, full + 1
    return full, left


def shared(v: Any) -> Checks:
    share, across = v["share"], v["share"]["horizontal"]
    limit = share["max_pov_size"] * share["percent"] // 100
    to_come = 40 * len(across) + (max(0, across[0] - 40) if across else 0)
    down_full, left = fill(share["downward"], limit - to_come, 36)
    across_full, left = fill(across, left + to_come, 40)
    size = max(0, left)
    yield "share", share | {"downward_full": down_full, "horizontal_full": across_full, "pubsub_bytes": size}
    yield from (("crowded", left < limit), ("budget.proof_size", size))


def check(v: Any) -> Checks:
    block = Subscriber(v, [v["nodes"][n] for n in v["given"]])
    try:
        block.verify()
    except Refused as error:
        yield "expect", {"panic": {"cause": INVALID.get(error.args[0], error.args[0])} | dict(*error.args[1:])}
    else:
        callbacks, events = block.write()
        results = [block.call(name, para, events) for name, para in v.get("calls", ())]
        out = block.summary() | {"callbacks": callbacks, "events": events, "after": pairs(block.entries)}
        yield "expect", out | ({"call_results": results} if "calls" in v else {})
    if "collected" in v:
        pruning = Subscriber(v, [v["nodes"][n] for n in v["collected"]])
        pruning.run()
        yield "pruned", [n for n, node in enumerate(v["nodes"]) if blake2(node) in pruning.accessed]
        yield "expect", v["expect"] | pruning.summary()
    if "share" in v:
        yield from shared(v)
    yield "hashed_keys", [[data, blake2(data)] for data, _ in v["hashed_keys"]] if "hashed_keys" in v else None
