"""The broadcaster pallet over raw entries: sections 7 and 8 of the suite's README."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conformance.proofs import trie
from conformance.scale import Refused, blake_concat, decode, encode, prefix, refuse, twox_concat, u32
from conformance.tries import CHILD, Checks, Store, pairs, put
from conformance.xcm import MOST, PARACHAINS, Run, ask, execute, instructions

PARA = "para:u32"
CALLS = (PARA, "manager:h32,deposit:u128,para:u32", PARA, PARA, PARA, "keys:*h32,para:?u32", "para:u32,keys:*h32")
HELD, BURNED, RELEASED = 9, 10, 11  # indexes of the events of Balances
REASON = b"\xc8\0"


class Broadcaster:
    """The state, and what each step does to it."""

    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.top, self.block = config, dict(state["top"]), 0
        self.children = {child["name"]: dict(child["entries"]) for child in state["children"]}
        self.events: list[bytes] = []
        self.reads: int = config["db_weight"]["read"]
        self.writes: int = config["db_weight"]["write"]

    def state(self) -> dict[str, Any]:
        roots = {name: trie(entries)[0] for name, entries in self.children.items() if entries}
        children = [{"name": n, "root": r, "entries": pairs(self.children[n])} for n, r in sorted(roots.items())]
        root = trie(self.top | {CHILD + name: root for name, root in roots.items()})[0]
        return {"top": pairs(self.top), "children": children, "root": root}

    def at(self, item: str, para: int | None = None, key: bytes | None = None) -> bytes:
        hasher = twox_concat if self.config["ttl_key_hasher"] == "Twox64Concat" else blake_concat
        place = prefix("Broadcaster", item) + (b"" if para is None else twox_concat(u32(para)))
        return place + (b"" if key is None else hasher(key))

    def tell(self, event: int, *fields: int | bytes) -> None:
        self.events.append(bytes([200, event]) + b"".join(u32(f) if isinstance(f, int) else f for f in fields))

    def published(self, para: int) -> Store:
        return self.children.setdefault(b"pubsub" + u32(para), {})

    def total(self, para: int) -> int:
        return sum(32 + len(decode("Entry", entry)["value"]) for entry in self.published(para).values())

    def settle(self, para: int) -> None:
        """Write what follows from the publisher's child trie."""
        keys = sorted(self.published(para))
        follows = {
            "PublisherExists": b"\1",
            "PublishedKeys": encode("*h32", keys),
            "TotalStorageSize": u32(self.total(para)),
        }
        for item, value in follows.items():
            put(self.top, self.at(item, para), value if keys else None)

    def remove(self, para: int, keys: Iterable[bytes]) -> int:
        gone = set(keys) & set(self.published(para))
        for key in gone:
            del self.published(para)[key]
            put(self.top, self.at("TtlData", para, key), None)
        self.settle(para)
        return len(gone)

    def move(self, who: bytes, amount: int, event: int) -> None:
        """Hold, slash or release a deposit."""
        if not amount:
            return
        spot, holds = prefix("System", "Account") + blake_concat(who), prefix("Balances", "Holds") + blake_concat(who)
        refuse(spot not in self.top, "CannotCreateHold")
        account = decode("Account", self.top[spot])
        refuse(event == HELD and account["free"] - self.config["existential_deposit"] < amount, "InsufficientBalance")
        account["reserved"] += amount if event == HELD else -amount
        account["free"] += {HELD: -amount, BURNED: 0, RELEASED: amount}[event]
        account["consumers"] = int(account["reserved"] > 0)
        self.top[spot] = encode("Account", account)
        put(self.top, holds, b"\4" + REASON + encode("u128", account["reserved"]) if account["reserved"] else None)
        if event == BURNED:
            issued = prefix("Balances", "TotalIssuance")
            self.top[issued] = encode("u128", decode("u128", self.top[issued]) - amount)
        self.events.append(bytes([2, event]) + REASON + who + encode("u128", amount))

    def registered(self, para: int) -> Any:
        entry = self.top.get(self.at("RegisteredPublishers", para))
        return entry and decode("Publisher", entry)

    def register(self, manager: bytes, deposit: int, para: int) -> None:
        refuse(bool(self.registered(para)), "AlreadyRegistered")
        registered = sum(key.startswith(self.at("RegisteredPublishers")) for key in self.top)
        refuse(registered >= self.config["max_publishers"], "TooManyPublishers")
        self.move(manager, deposit, HELD)
        self.top[self.at("RegisteredPublishers", para)] = encode("Publisher", {"manager": manager, "deposit": deposit})
        self.tell(1, para, manager)

    def deregister(self, para: int, event: int = RELEASED) -> int:
        if publisher := self.registered(para):
            self.move(publisher["manager"], publisher["deposit"], event)
            del self.top[self.at("RegisteredPublishers", para)]
        if gone := self.remove(para, self.published(para)):
            self.tell(3, para)
        if publisher:
            self.tell(2, para)
        return 10_000_000 + 5 * self.reads + 6 * self.writes + gone * (5_000_000 + 2 * self.writes)

    def publish(self, para: int, body: Any) -> None:
        config, entries, total = self.config, self.published(para), self.total(para)
        key, value, ttl = body["key"], body["value"], u32(body["ttl"]) + u32(self.block)
        new = total + 32 + len(value)
        new -= 32 + len(decode("Entry", entries[key])["value"]) if key in entries else 0
        refuse(para >= 2000 and not self.registered(para), "NotRegistered")
        refuse(len(value) > config["max_value_length"], "ValueTooLarge")
        refuse(key not in entries and len(entries) >= config["max_stored_keys"], "TooManyKeys")
        refuse(new > max(total, config["max_total_storage_size"]), "TotalStorageSizeExceeded")
        entries[key] = encode("bytes", value) + ttl
        put(self.top, self.at("TtlData", para, key), ttl if body["ttl"] else None)
        self.settle(para)
        self.tell(0, para, key)

    def idle(self, remaining: Any) -> int:
        start, cursor, used = self.at("TtlData"), self.at("TtlScanCursor"), self.reads
        each, last = 2 * self.reads + 4 * self.writes, self.top.get(cursor)
        if used > remaining["ref_time"]:
            return 0
        after = self.at("TtlData", decode("u32", last[:4]), last[4:]) if last else b""
        for scans, spot in enumerate(sorted(key for key in self.top if key.startswith(start) and key > after)):
            if scans >= self.config["max_ttl_scans_per_idle"] or used + each > remaining["ref_time"]:
                put(self.top, cursor, last)
                return used
            used, last = used + each, spot[40:44] + spot[-32:]
            para, key = decode("u32", last[:4]), last[4:]
            ttl, inserted = decode("2*u32", self.top[spot])
            if self.block >= min(ttl + inserted, 2**32 - 1):
                self.remove(para, [key])
                self.tell(4, para, key)
        put(self.top, cursor, None)
        return used

    def call(self, origin: Any, data: bytes) -> tuple[int, int]:
        """Make a call; give its weight."""
        number, config, r, w = data[1], self.config, self.reads, self.writes
        given, who = decode(CALLS[number], data[2:]), origin if isinstance(origin, dict) else {}
        para, signed, caller = given["para"], who.get("signed"), who.get("parachain") if number == 5 else None
        refuse(origin != "root" if number in (1, 4, 6) else signed is None and caller is None, "BadOrigin")
        if number == 0:
            refuse(para < 2000 and config["registration"] == "public", "NotPublicParachain")
        if number < 2:
            self.register(given.get("manager", signed), given.get("deposit", config["publisher_deposit"]), para)
            return (15_000_000 if number else 20_000_000) + 3 * r + 3 * w, 3_000
        refuse(para is None and caller is None, "CannotBeMeant")
        refuse(caller is not None and para not in (None, caller), "NotOwner")
        para = para if caller is None else caller
        publisher = self.registered(para)
        refuse(not publisher and (para >= 2000 or (number != 6 and caller is None)), "NotRegistered")
        refuse(signed is not None and publisher["manager"] != signed, "NotManager")
        if number == 2:
            gone = self.remove(para, self.published(para))
            refuse(not gone, "NoDataToCleanup")
            self.tell(3, para)
            return 10_000_000 + 3 * r + 3 * w + gone * (5_000_000 + 2 * w), 0
        if number < 5:
            return self.deregister(para, BURNED if number == 4 and config["slash_on_force"] else RELEASED), 0
        if gone := self.remove(para, given["keys"]):
            self.tell(number, para, gone)
        return (w + r if number == 6 else w + 2 * r) + len(given["keys"]) * (r + 2 * w), 0

    def message(self, para: int, data: bytes) -> tuple[Any, Any]:
        """Execute a parachain's message; give result and weight."""
        origin, ten = {"parents": 0, "interior": {"X1": [{"Parachain": para}]}}, {"ref_time": 10, "proof_size": 10}
        barrier = {
            "barrier": "AllowPublishFrom",
            "origins": PARACHAINS,
            "max_instructions": self.config["max_publish_instructions"],
        }
        try:
            message = ask(barrier, origin, instructions(data), {"weight": ten})
        except Refused as error:
            return {"error": "Barrier", "cause": error.args[0]}, None
        ended = execute(Run(origin, PARACHAINS, self.publish), message, ten, dict.fromkeys(ten, MOST))
        return {name: ended[name] for name in ("error", "index", "cause") if name in ended} or "ok", ended["used"]

    def step(self, step: Any) -> dict[str, Any]:
        """Do a step; give what `expect` says of it."""
        before = dict(self.top), {name: dict(entries) for name, entries in self.children.items()}
        self.events, self.block = [], step["block"]
        result: Any = "ok"
        weight, pair = None, (0, 0)
        try:
            if "xcm" in step:
                result, weight = self.message(step["xcm"]["from"], step["xcm"]["message"])
            elif "call" in step:
                pair = self.call(step["origin"], step["call"])
            else:
                pair = self.idle(step["on_idle"]) if "on_idle" in step else self.deregister(step["offboard"]), 0
        except Refused as error:
            (self.top, self.children), self.events = before, []
            result = {"error": error.args[0]}
        out = {"result": result, "events": self.events, "root": self.state()["root"]}
        if result == "ok" and weight is None:
            weight = dict(zip(("ref_time", "proof_size"), pair, strict=True))
        return out if weight is None else out | {"consumed": weight}


def check(v: Any) -> Checks:
    pallet = Broadcaster(v["config"], v["before"])
    yield "before", pallet.state()
    for number, step in enumerate(v["steps"]):
        yield f"steps.{number}.expect", pallet.step(step)
    yield "after", pallet.state()
