"""What a subscriber's block demands of its pass and writes: sections 9.7 to 9.12 of the suite's README."""

from collections.abc import Iterator
from typing import Any

from conformance.scale import Refused, attempt, blake2, decode, encode, refuse
from conformance.tries import Place, descend
from conformance.walk import Pass, Publisher
from conformance.xcm import ZERO, fits

OF_A_PUBLISHER = ("UnfinishedPublishers", "CachedTrieNodes", "SharedTrieNodes")


def decoded(data: bytes | None) -> Any:
    """Give the entry that these bytes are, if they are one."""
    return None if data is None else attempt("entry", lambda: decode("PublishedEntry", data)).get("entry")


class Subscriber(Pass):
    """One block, with the nodes that it is given."""

    def verify(self) -> None:
        """Run the pass and demand that it read all nodes, and what the budget allowed (9.7)."""
        refuse(len(self.nodes) < len(self.given), "DuplicateNode")
        self.run()
        unused = sorted(set(self.nodes) - self.accessed)
        refuse(bool(unused), "UnusedNodes", {"hashes": unused})
        if self.stopped_at and not self.limited:
            left = {name: self.v["budget"][name] - used for name, used in self.consumed.items()}
            place = dict(zip(("publisher", "key", "remaining"), (*self.stopped_at, left), strict=True))
            refuse(fits(self.charged(self.most), self.v["budget"]), "IncompleteBelowLimit", place)

    def tell(self, event: str, *fields: Any) -> None:
        self.events.append(encode("SubscriberEvent", {event: fields}))

    def forget(self, para: int, *items: str) -> None:
        self.roots.pop(para, None)
        for key in [key for item in items for key in self.under(item, para)]:
            del self.entries[key]

    def settle(self) -> None:
        """Write the two maps."""
        self.put("PreviousPublishedDataRoots", sorted(self.roots.items()) or None)
        self.put("SubscribedKeysDigests", sorted(self.digests.items()) or None)

    def write(self) -> list[Any]:
        """Write what VERIFY leaves (9.7); give the callbacks."""
        finished = {p.para: p.new for p in self.met if p.new and not p.disabled and len(p.dealt) == len(p.keys)}
        self.follow_subscriptions()
        for publisher in self.met:
            if publisher.new is None:
                self.forget(publisher.para, *OF_A_PUBLISHER)
            elif publisher.disabled:
                self.put("DisabledPublishers", "TrieDepthExceeded", publisher.para)
                self.tell("PublisherDisabled", publisher.para, "TrieDepthExceeded")
            else:
                self.keep(publisher, publisher.new, publisher.para in finished)
        self.roots = finished if self.policies.get("root_commit") == "forget-unchanged" else self.roots | finished
        self.settle()
        for item, spot in zip(("RelayProofProcessingCursor", "OwedKey"), self.next, strict=True):
            self.put(item, spot)
        self.put("PublisherOrderSeed", self.seed if self.stopped_at else None)
        if self.stuck and self.begin and self.limited:
            declared = self.declared.get(self.begin, ZERO)
            self.tell("CallbackBeyondLimit", *self.begin, declared, self.config["callback_limit"])
        elif self.stuck and self.begin:
            self.tell("KeyBeyondBudget", *self.begin, self.bytes_read)
        return [callback for publisher in self.met if not publisher.disabled for callback in self.callbacks(publisher)]

    def follow_subscriptions(self) -> None:
        """Write what was delivered and what is subscribed to (9.11, step 0; 9.7, step 1)."""
        for publisher in self.publishers if self.policies.get("deletion") == "told" else ():
            self.note_delivered(publisher)
        for para in set(self.digests) - set(self.wanted):
            del self.digests[para]
            self.forget(para, "SubscribedKeys", "UnfinishedPublishers", "DeliveredKeys")
        for publisher in [one for one in self.publishers if one.change != "NONE"]:
            self.digests[publisher.para] = publisher.digest
            self.put("SubscribedKeys", publisher.keys, publisher.para)
            if publisher.change == "REMOVED":
                self.forget(publisher.para, *OF_A_PUBLISHER)
            if publisher.change == "ADDED":
                self.put("UnfinishedPublishers", publisher.ranges(publisher.bases), publisher.para)

    def note_delivered(self, publisher: Publisher) -> None:
        """Write the bitmap of the keys that were delivered (9.11, step 0)."""
        told, known = publisher.delivered, publisher.root is not None or publisher.has_bases
        if publisher.change == "NONE" and not (publisher in self.met and (publisher.told or not known)):
            return
        if publisher in self.met and not publisher.disabled:
            known = publisher.new is not None
            told = told | {key for key, data in publisher.told.items() if decoded(data)}
            told -= {key for key, data in publisher.told.items() if data is None}
        bits = sum(1 << n for n, key in enumerate(publisher.keys) if key in told)
        bitmap = bits.to_bytes((len(publisher.keys) + 7) // 8, "little")
        self.put("DeliveredKeys", bitmap if told or known else None, publisher.para)

    def callbacks(self, publisher: Publisher) -> Iterator[Any]:
        """Give a publisher's callbacks, with their events (9.7, step 5)."""
        for key, data in sorted(publisher.told.items(), key=lambda pair: pair[1] is None):
            spot, entry = (publisher.para, key), decoded(data)
            if data is None:
                self.tell("DataDeleted", *spot)
                yield *spot, None, None
            elif entry is None:
                self.tell("EntryUndecodable", *spot)
                continue
            else:
                left = min(entry["when_inserted"] + entry["ttl"] - self.v["relay_parent_number"], 2**32 - 1)
                state = "Infinite" if not entry["ttl"] else {"BlocksLeft": left} if left > 0 else "TimedOut"
                self.tell("DataProcessed", *spot, len(entry["value"]))
                yield *spot, entry["value"], encode("TtlState", state)
            declared, used = self.declared.get(spot, ZERO), self.used.get(spot, ZERO)
            if not fits(used, declared):
                self.tell("CallbackOverweight", *spot, declared, used)

    def keep(self, publisher: Publisher, new: bytes, finished: bool) -> None:
        """Write the cache and the bases of a publisher that is finished or interrupted (9.7, step 2)."""
        para, nodes, places = publisher.para, publisher.cache | publisher.fresh, dict[bytes, set[str]]()
        bases = [new if n in publisher.dealt else base for n, base in enumerate(publisher.bases)]
        for key, base in zip(publisher.keys, bases, strict=True):
            for place in descend(base, key, nodes.get) if base else ():
                if isinstance(place, Place) and place.reference in nodes:
                    places.setdefault(place.reference, set()).add(key.hex()[: 64 - len(place.path)])
        most = 0 if self.policies.get("cache") == "none" else int(self.policies.get("max_cached_node", 750))
        small = {wanted: node for wanted, node in nodes.items() if len(node) <= most}
        if finished:
            kept = {wanted: node for wanted, node in small.items() if wanted in places}
            counts = [(wanted, len(places[wanted])) for wanted in sorted(kept) if len(places[wanted]) > 1]
            self.put("SharedTrieNodes", counts or None, para)
            self.put("UnfinishedPublishers", None, para)
        else:
            at_once = self.policies.get("root_commit") == "after-first-key" and new != publisher.root
            self.roots |= {para: new} if at_once else {}
            self.put("UnfinishedPublishers", None if at_once else publisher.ranges(bases), para)
            first, (stopped_in, stop) = publisher.first or 0, self.stopped_at or (0, b"")
            stopped = publisher.keys.index(stop) if stopped_in == para else first
            prunes = publisher.has_bases and not 0 < first < stopped
            kept = {wanted: node for wanted, node in publisher.cache.items() if not prunes or wanted in places}
            kept |= {wanted: node for wanted, node in publisher.fresh.items() if wanted in small}
        for wanted in nodes:
            self.put("CachedTrieNodes", kept.get(wanted), para, wanted)

    def call(self, name: str, para: int) -> str:
        """Make a call by root after the pass (9.9); give its result."""
        match name:
            case "clear_stored_roots":
                done, error, event = para in self.roots, "PublisherRootNotFound", "PublisherRootCleared"
                self.forget(para, *["UnfinishedPublishers"] * done)
            case "enable_publisher":
                done, error, event = (
                    self.put("DisabledPublishers", None, para),
                    "PublisherNotDisabled",
                    "PublisherEnabled",
                )
            case _:
                done, error, event = self.clear_cache(para), "NoCachedNodes", "PublisherCacheCleared"
        if not done:
            return error
        self.settle()
        self.tell(event, para)
        return "ok"

    def clear_cache(self, para: int) -> bool:
        remembers = self.policies.get("deletion") == "told" and para in self.digests
        items = OF_A_PUBLISHER if remembers else (*OF_A_PUBLISHER, "SubscribedKeys", "DeliveredKeys")
        held = para in self.roots or self.digests.get(para, bytes(32)) != bytes(32)
        if not held and not any(self.under(item, para) for item in items):
            return False
        self.forget(para, *items)
        self.digests = {p: d for p, d in self.digests.items() if p != para} | ({para: bytes(32)} if remembers else {})
        stored = [self.get("RelayProofProcessingCursor"), self.get("OwedKey")]
        cursor, owed, *_ = *(spot for spot in stored if spot and spot[0] != para), None, None
        seed = self.get("PublisherOrderSeed") if cursor else None
        for item, value in (("RelayProofProcessingCursor", cursor), ("OwedKey", owed), ("PublisherOrderSeed", seed)):
            self.put(item, value)
        return True


def fill(lengths: list[int], left: int, hashed: int) -> tuple[int, int]:
    """Give how many messages fit in full, and what is left (9.10)."""
    left, full = left - hashed * len(lengths), 0
    while full < len(lengths) and (not full or lengths[full] - hashed <= left):
        left, full = left - lengths[full] + hashed, full + 1
    return full, left


def shared(v: Any) -> dict[str, Any]:
    """Give the share with what follows from it, the budget and whether the block is crowded (9.10)."""
    share, across = v["share"], v["share"]["horizontal"]
    limit = share["max_pov_size"] * share["percent"] // 100
    to_come = 40 * len(across) + (max(0, across[0] - 40) if across else 0)
    down_full, left = fill(share["downward"], limit - to_come, 36)
    across_full, left = fill(across, left + to_come, 40)
    share = share | {"downward_full": down_full, "horizontal_full": across_full, "pubsub_bytes": max(0, left)}
    return {"share": share, "budget": v["budget"] | {"proof_size": max(0, left)}, "crowded": left < limit}


def expected(v: Any) -> dict[str, Any]:
    """Give the fields of a vector that are to be computed."""
    block, out = Subscriber(v, [v["nodes"][n] for n in v["given"]]), dict[str, Any]()
    try:
        block.verify()
    except Refused as error:
        out["expect"] = {"panic": {"cause": error.args[0]} | dict(*error.args[1:])}
    else:
        callbacks, summary = block.write(), block.summary()
        results = [block.call(name, para) for name, para in v.get("calls", ())]
        after = {
            "callbacks": callbacks,
            "events": block.events,
            "after": sorted(block.entries.items()),
            "call_results": results,
        }
        out["expect"] = summary | after
    if "collected" in v:
        pruning = Pass(v, [v["nodes"][n] for n in v["collected"]])
        pruning.run()
        out["pruned"] = [n for n, node in enumerate(v["nodes"]) if blake2(node) in pruning.accessed]
        out["expect"] |= {} if pruning.summary().items() <= out["expect"].items() else pruning.summary()
    out |= shared(v) if "share" in v else {}
    return out | {"hashed_keys": [[data, blake2(data)] for data, _ in v.get("hashed_keys", ())] or None}
