"""The broadcaster pallet over raw entries: sections 7 and 8 of the suite's README."""

from collections.abc import Iterable
from typing import Any

from conformance.scale import Storage, attempt, decode, encode, named, refuse
from conformance.tries import CHILD, Store, trie
from conformance.xcm import ZERO, ask, execute, instructions

REASON, PARACHAINS, NO_LIMIT = b"\xc8\0", {"filter": "OnlyParachains"}, dict.fromkeys(ZERO, 2**64)


class Broadcaster(Storage):
    """The state, and what each step does to it."""

    def __init__(self, config: Any, state: Any) -> None:
        super().__init__(state["top"], ttl_key_hasher=config["ttl_key_hasher"])
        self.children = {child["name"]: dict(child["entries"]) for child in state["children"]}
        self.config, self.block, self.events = config, 0, list[bytes]()

    def state(self) -> dict[str, Any]:
        roots = {name: trie(entries)[0] for name, entries in sorted(self.children.items()) if entries}
        children = [{"name": n, "root": r, "entries": sorted(self.children[n].items())} for n, r in roots.items()]
        root = trie(self.entries | {CHILD + name: root for name, root in roots.items()})[0]
        return {"top": sorted(self.entries.items()), "children": children, "root": root}

    def tell(self, event: str, *fields: Any, pallet: str = "Broadcaster") -> None:
        self.events.append(encode("RuntimeEvent", {pallet: {event: fields}}))

    def weight(self, base: int, reads: int, writes: int) -> int:
        return int(base + reads * self.config["db_weight"]["read"] + writes * self.config["db_weight"]["write"])

    def published(self, para: int) -> Store:
        return self.children.setdefault(b"pubsub" + encode("u32", para), {})

    def settle(self, para: int) -> int:
        """Write what follows from the publisher's child trie; give the total of its keys and values."""
        entries = self.published(para)
        total = sum(32 + len(decode("PublishedEntry", entry)["value"]) for entry in entries.values())
        for item, value in (("PublisherExists", 1), ("PublishedKeys", sorted(entries)), ("TotalStorageSize", total)):
            self.put(item, value if entries else None, para)
        return total

    def remove(self, para: int, keys: Iterable[bytes]) -> int:
        gone = set(keys) & set(self.published(para))
        for key in gone:
            del self.published(para)[key]
            self.put("TtlData", None, para, key)
        self.settle(para)
        return len(gone)

    def move(self, who: bytes, amount: int, event: str) -> None:
        """Hold, burn or release a deposit."""
        if not amount:
            return
        account, held = self.get("Account", who), event == "Held"
        refuse(account is None, "CannotCreateHold")
        refuse(held and account["free"] - self.config["existential_deposit"] < amount, "InsufficientBalance")
        account["reserved"] += amount if held else -amount
        account["free"] += {"Held": -amount, "BurnedHeld": 0, "Released": amount}[event]
        account["consumers"] = int(account["reserved"] > 0)
        self.put("Account", account, who)
        self.put("Holds", [(REASON, account["reserved"])] if account["reserved"] else None, who)
        self.put("TotalIssuance", self.get("TotalIssuance") - (amount if event == "BurnedHeld" else 0))
        self.tell(event, REASON, who, amount, pallet="Balances")

    def deregister(self, para: int, event: str = "Released") -> int:
        if publisher := self.get("RegisteredPublishers", para):
            self.move(publisher["manager"], publisher["deposit"], event)
            self.put("RegisteredPublishers", None, para)
        if gone := self.remove(para, self.published(para)):
            self.tell("DataCleanedUp", para)
        if publisher:
            self.tell("PublisherDeregistered", para)
        return self.weight(10_000_000 + gone * 5_000_000, 5, 6 + 2 * gone)

    def publish(self, para: int, body: Any) -> None:
        config, entries, total = self.config, self.published(para), self.settle(para)
        key, value, times = body["key"], body["value"], (body["ttl"], self.block)
        new = total + 32 + len(value)
        new -= 32 + len(decode("PublishedEntry", entries[key])["value"]) if key in entries else 0
        refuse(para >= 2000 and not self.get("RegisteredPublishers", para), "NotRegistered")
        refuse(len(value) > config["max_value_length"], "ValueTooLarge")
        refuse(key not in entries and len(entries) >= config["max_stored_keys"], "TooManyKeys")
        refuse(new > max(total, config["max_total_storage_size"]), "TotalStorageSizeExceeded")
        entries[key] = encode("PublishedEntry", (value, *times))
        self.put("TtlData", times if body["ttl"] else None, para, key)
        self.settle(para)
        self.tell("DataPublished", para, key)

    def idle(self, limit: int) -> int:
        last, used, each = self.get("TtlScanCursor"), self.weight(0, 1, 0), self.weight(0, 2, 4)
        if used > limit:
            return 0
        after = self.at("TtlData", *last) if last else b""
        for scans, spot in enumerate(spot for spot in self.under("TtlData") if spot > after):
            if scans >= self.config["max_ttl_scans_per_idle"] or used + each > limit:
                break
            used, last = used + each, decode("PublishedKey", spot[40:44] + spot[-32:])
            if self.block >= min(sum(self.get("TtlData", *last).values()), 2**32 - 1):
                self.remove(last[0], last[1:])
                self.tell("KeyExpired", *last)
        else:
            last = None
        self.put("TtlScanCursor", last)
        return used

    def call(self, origin: Any, data: bytes) -> tuple[int, int]:
        """Make a call; give its weight."""
        (name, given), (kind, who), config = named(decode("Call", data[1:])), named(origin), self.config
        para, forced, owner = given.get("para_id", given.get("publisher")), kind == "root", kind == "parachain"
        allowed = ["root"] if name.startswith("force_") else ["signed", "parachain"][: 1 + (name == "delete_keys")]
        refuse(kind not in allowed, "BadOrigin")
        if name in ("register_publisher", "force_register_publisher"):
            manager, deposit = given.get("manager", who), given.get("deposit", config["publisher_deposit"])
            refuse(not forced and para < 2000 and config["registration"] == "public", "NotPublicParachain")
            refuse(self.get("RegisteredPublishers", para) is not None, "AlreadyRegistered")
            refuse(len(self.under("RegisteredPublishers")) >= config["max_publishers"], "TooManyPublishers")
            self.move(manager, deposit, "Held")
            self.put("RegisteredPublishers", (manager, deposit), para)
            self.tell("PublisherRegistered", para, manager)
            return self.weight(15_000_000 if forced else 20_000_000, 3, 3), 3_000
        refuse(para is None and not owner, "CannotBeMeant")
        refuse(owner and para not in (None, who), "NotOwner")
        para = who if owner else para
        publisher = self.get("RegisteredPublishers", para)
        refuse(not publisher and (para >= 2000 or not (owner or name == "force_delete_keys")), "NotRegistered")
        refuse(kind == "signed" and publisher["manager"] != who, "NotManager")
        if name == "cleanup_published_data":
            gone = self.remove(para, self.published(para))
            refuse(not gone, "NoDataToCleanup")
            self.tell("DataCleanedUp", para)
            return self.weight(10_000_000 + gone * 5_000_000, 3, 3 + 2 * gone), 0
        if name in ("deregister_publisher", "force_deregister_publisher"):
            return self.deregister(para, "BurnedHeld" if forced and config["slash_on_force"] else "Released"), 0
        if gone := self.remove(para, given["keys"]):
            self.tell("KeysForcedDeleted" if forced else "KeysDeleted", para, gone)
        return self.weight(0, 2 - forced + len(given["keys"]), 1 + 2 * len(given["keys"])), 0

    def message(self, para: int, data: bytes) -> tuple[Any, Any]:
        """Execute a parachain's message; give result and weight."""
        origin, ten = {"parents": 0, "interior": {"X1": [{"Parachain": para}]}}, dict.fromkeys(ZERO, 10)
        barrier = {"barrier": "AllowPublishFrom", "origins": PARACHAINS}
        barrier |= {"max_instructions": self.config["max_publish_instructions"]}
        asked = attempt("runs", lambda: ask(barrier, origin, instructions(data), {"weight": ten}))
        if "error" in asked:
            return {"error": "Barrier", "cause": asked["error"]}, None
        ended = execute({"origin": origin, "unit": ten, "weight_limit": NO_LIMIT}, asked["runs"], self.publish)
        return {name: ended[name] for name in ("error", "index", "cause") if name in ended} or "ok", ended["used"]

    def do(self, step: Any) -> tuple[Any, Any]:
        match step:
            case {"xcm": xcm}:
                return self.message(xcm["from"], xcm["message"])
            case {"call": call}:
                return "ok", dict(zip(ZERO, self.call(step["origin"], call), strict=True))
            case {"on_idle": remaining}:
                return "ok", ZERO | {"ref_time": self.idle(remaining["ref_time"])}
        return "ok", ZERO | {"ref_time": self.deregister(step["offboard"])}

    def step(self, step: Any) -> Any:
        """Do a step; give what `expect` says of it."""
        before = dict(self.entries), {name: dict(entries) for name, entries in self.children.items()}
        self.events, self.block = [], step["block"]
        done = attempt("done", lambda: self.do(step))
        if "error" in done:
            (self.entries, self.children), self.events = before, []
        result, used = done.get("done", (done, None))
        out = {"result": result, "events": self.events, "root": self.state()["root"]}
        return step | {"expect": out if used is None else out | {"consumed": used}}


def expected(v: Any) -> dict[str, Any]:
    """Give the fields of a vector that are to be computed."""
    pallet = Broadcaster(v["config"], v["before"])
    return {"before": pallet.state(), "steps": list(map(pallet.step, v["steps"])), "after": pallet.state()}
