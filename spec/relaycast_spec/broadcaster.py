"""Chapter 4. The broadcaster: the relay chain's pallet that keeps what parachains publish.

A publisher is a parachain. Those with an id from 2000 on register first, with a deposit; system parachains need not.
Each publisher has its own child trie, and the relay chain's state holds the root of each: so the relay chain's root
proves every published value. Limits bound the number of keys, each value, and their sum. An entry may expire.

Law: a call checks first, in the order written here, then writes, then deposits its events. A refused call changes
nothing.

Source: RFC-0160, "Broadcaster pallet"; the public drafts' ``pallet-broadcaster`` for bytes and weights.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from relaycast_spec import xcm
from relaycast_spec.scale import U32_MAX, Refused, State, decode, encode, refuse_if, variant
from relaycast_spec.tries import CHILD_STORAGE, child_trie_name, trie
from relaycast_spec.xcm import FIRST_PUBLIC_ID, ZERO, Weight

KEY_BYTES = 32
"""DECISION: an entry counts these and the length of its value. Every limit may be reached exactly."""

DEPOSIT_REASON = b"\xc8\0"
"""Encoded reason of a hold: pallet 200, variant 0 (``PublisherDeposit``)."""

MESSAGE_UNIT = dict.fromkeys(ZERO, 10)
"""Weight of each instruction of a message in the vectors."""

NO_LIMIT = dict.fromkeys(ZERO, 2**64)
"""The vectors do not limit the weight of a message."""


class Origin(NamedTuple):
    """Who calls: ``root`` (governance), ``signed`` by an account, a ``parachain``, or ``none``."""

    kind: str
    who: Any = None


class Config(NamedTuple):
    """The limits of a relay chain. Each may be reached exactly."""

    max_publishers: int
    max_stored_keys: int
    max_value_length: int
    max_total_storage_size: int
    max_ttl_scans_per_idle: int
    max_publish_instructions: int
    publisher_deposit: int
    existential_deposit: int
    db_weight: dict[str, int]
    """Picoseconds of a ``read`` and of a ``write`` of the database."""

    registration: str = "public"
    """DECISION (registration): ``open`` lets accounts register system parachains too, as the drafts do."""

    slash_on_force: bool = False
    """DECISION (slash_on_force): whether governance slashes the deposit of a publisher that it deregisters."""

    ttl_key_hasher: str = "Twox64Concat"
    """DECISION (ttl_key_hasher): the drafts' design says ``Blake2_128Concat``, their code this."""


class Broadcaster:
    """The relay chain's state as far as publishing has a part in it, and what changes it."""

    def __init__(
        self,
        config: Config,
        top: Iterable[tuple[bytes, bytes]],
        children: Iterable[tuple[bytes, Iterable[tuple[bytes, bytes]]]],
    ) -> None:
        self.config = config
        self.state = State(top, ttl_key_hasher=config.ttl_key_hasher)
        self.children = {name: dict(entries) for name, entries in children}
        self.block = 0
        """The number of the current relay block."""

        self.events: list[bytes] = []

    # State

    def roots(self) -> dict[bytes, bytes]:
        """Return the roots of the child tries by their names. An empty child trie has no root."""
        return {name: trie(entries)[0] for name, entries in sorted(self.children.items()) if entries}

    def root(self) -> bytes:
        """Return the root of the state: that of the top trie, which holds the child roots."""
        roots = {CHILD_STORAGE + name: root for name, root in self.roots().items()}
        return trie(self.state.entries | roots)[0]

    def published(self, para_id: int) -> dict[bytes, bytes]:
        """Return the entries of a publisher's child trie by their keys."""
        return self.children.setdefault(child_trie_name(para_id), {})

    def total_size(self, para_id: int) -> int:
        """Return what a publisher's entries count: the bytes of its values, and 32 for each key."""
        return sum(_size(entry) for entry in self.published(para_id).values())

    def update_counters(self, para_id: int) -> None:
        """Update the counters of a publisher, or remove them if it has no entries."""
        entries = self.published(para_id)
        self.state.put("PublisherExists", 1 if entries else None, para_id)
        self.state.put("PublishedKeys", sorted(entries) if entries else None, para_id)
        self.state.put("TotalStorageSize", self.total_size(para_id) if entries else None, para_id)

    def remove_keys(self, para_id: int, keys: Iterable[bytes]) -> int:
        """Remove those of the keys that are there, and return their number."""
        entries = self.published(para_id)
        removed = set(keys) & set(entries)
        for key in removed:
            del entries[key]
            self.state.put("TtlData", None, para_id, key)
        self.update_counters(para_id)
        return len(removed)

    def deposit_event(self, name: str, *fields: Any, pallet: str = "Broadcaster") -> None:
        """Add an event of the block."""
        self.events.append(encode("RuntimeEvent", {pallet: {name: fields}}))

    def database(self, base: int, reads: int, writes: int) -> int:
        """Return ``base`` and the picoseconds of accesses of the database."""
        return base + reads * self.config.db_weight["read"] + writes * self.config.db_weight["write"]

    # Publishing

    def publish(self, para_id: int, content: dict[str, Any]) -> None:
        """Store an entry: the instruction ``Publish`` of the parachain ``para_id``.

        The key is stored as it is; publishers hash their names before. ``when_inserted`` is the current relay block,
        also where the value is the one that is there.

        Scenario: Publisher Registration / System parachain publishes without registration
        Scenario: XCM Publish Instruction / Successful publish
        Scenario: XCM Publish Instruction / Publish with finite TTL
        Scenario: XCM Publish Instruction / Publish fails for unregistered public parachain
        Scenario: XCM Publish Instruction / Publish fails when storage limit exceeded
        Scenario: Data Storage Limits / Key count limit
        Scenario: Data Storage Limits / Value size limit
        Scenario: Data Storage Limits / Total storage size limit
        Scenario: TTL Expiration / Infinite TTL
        Scenario: TTL Expiration / TTL reset on update
        Scenario: TTL Expiration / TTL change from finite to infinite
        """
        config, entries = self.config, self.published(para_id)
        key, value, ttl = content["key"], content["value"], content["ttl"]
        total = self.total_size(para_id)
        replaced = _size(entries[key]) if key in entries else 0
        new_total = total - replaced + KEY_BYTES + len(value)
        refuse_if(not self._may_publish(para_id), "NotRegistered")
        refuse_if(len(value) > config.max_value_length, "ValueTooLarge")
        refuse_if(key not in entries and len(entries) >= config.max_stored_keys, "TooManyKeys")
        # DECISION: an update that does not grow the total is always allowed, also above a limit that was lowered
        refuse_if(new_total > max(total, config.max_total_storage_size), "TotalStorageSizeExceeded")
        entries[key] = encode("PublishedEntry", (value, ttl, self.block))
        self.state.put("TtlData", (ttl, self.block) if ttl else None, para_id, key)
        self.update_counters(para_id)
        self.deposit_event("DataPublished", para_id, key)

    def receive(self, para_id: int, message: bytes) -> xcm.Outcome:
        """Execute a message of a parachain; ``Refused`` if the barrier does not let it in."""
        origin = xcm.parachain(para_id)
        barrier = {
            "barrier": "AllowPublishFrom",
            "origins": {"filter": "OnlyParachains"},
            "max_instructions": self.config.max_publish_instructions,
        }
        program, about = xcm.decode_message(message), xcm.Properties(MESSAGE_UNIT, {}, [])
        try:
            program = xcm.admitted(barrier, origin, program, about)
        except Refused as refused:
            raise Refused("Barrier", refused.name) from None
        return xcm.Executor(origin, MESSAGE_UNIT, self.publish).run(program, NO_LIMIT)

    # Registration

    def registration(self, para_id: int) -> dict[str, Any] | None:
        """Return the manager and the deposit of a registered publisher."""
        found: dict[str, Any] | None = self.state.get("RegisteredPublishers", para_id)
        return found

    def register(self, para_id: int, manager: bytes, deposit: int) -> None:
        """Register a publisher; ``manager`` pays the deposit and may deregister it.

        Scenario: Publisher Registration / Public parachain registration
        Scenario: Publisher Registration / Registration fails when already registered
        Scenario: Publisher Registration / Registration fails when max publishers reached
        """
        refuse_if(self.registration(para_id) is not None, "AlreadyRegistered")
        refuse_if(len(self.state.raw_keys("RegisteredPublishers")) >= self.config.max_publishers, "TooManyPublishers")
        self.move_deposit("Held", manager, deposit)
        self.state.put("RegisteredPublishers", (manager, deposit), para_id)
        self.deposit_event("PublisherRegistered", para_id, manager)

    def deregister(self, para_id: int, *, slashes: bool = False) -> Weight:
        """Remove a publisher and all that it published; its deposit is released, or slashed.

        DECISION: off-boarding a parachain comes here as well, registered or not.

        Scenario: Publisher Deregistration / Voluntary deregistration
        """
        publisher = self.registration(para_id)
        if publisher is not None:
            self.move_deposit("BurnedHeld" if slashes else "Released", publisher["manager"], publisher["deposit"])
            self.state.put("RegisteredPublishers", None, para_id)
        removed = self.remove_keys(para_id, self.published(para_id))
        if removed:
            self.deposit_event("DataCleanedUp", para_id)
        if publisher is not None:
            self.deposit_event("PublisherDeregistered", para_id)
        return self._weight(10_000_000 + removed * 5_000_000, 5, 6 + 2 * removed)

    def move_deposit(self, event: str, who: bytes, amount: int) -> None:
        """Hold, release or burn a deposit of an account. A deposit of nothing leaves no trace."""
        if not amount:
            return
        account = self.state.get("Account", who)
        refuse_if(account is None, "CannotCreateHold")
        if event == "Held":
            refuse_if(account["free"] - self.config.existential_deposit < amount, "InsufficientBalance")
            account["free"] -= amount
            account["reserved"] += amount
        else:
            account["reserved"] -= amount
            account["free"] += amount if event == "Released" else 0
        account["consumers"] = 1 if account["reserved"] else 0
        self.state.put("Account", account, who)
        self.state.put("Holds", [(DEPOSIT_REASON, account["reserved"])] if account["reserved"] else None, who)
        if event == "BurnedHeld":
            self.state.put("TotalIssuance", self.state.get("TotalIssuance") - amount)
        self.deposit_event(event, DEPOSIT_REASON, who, amount, pallet="Balances")

    # Calls

    def call(self, origin: Origin, data: bytes) -> Weight:
        """Dispatch an encoded call and return its weight."""
        name, arguments = variant(decode("Call", data[1:]))  # the first byte is the pallet's index
        dispatch: Callable[..., Weight] = getattr(self, name)
        return dispatch(origin, **arguments)

    def register_publisher(self, origin: Origin, para_id: int) -> Weight:
        """Register a parachain for an account, which pays ``publisher_deposit``.

        DECISION (registration): an id below 2000 is refused to accounts; anyone may register any other.
        """
        refuse_if(origin.kind != "signed", "BadOrigin")
        is_open = self.config.registration == "open"
        refuse_if(para_id < FIRST_PUBLIC_ID and not is_open, "NotPublicParachain")
        self.register(para_id, origin.who, self.config.publisher_deposit)
        return self._weight(20_000_000, 3, 3, proof_size=3_000)

    def force_register_publisher(self, origin: Origin, manager: bytes, deposit: int, para_id: int) -> Weight:
        """Register any parachain for governance, with any deposit."""
        refuse_if(origin.kind != "root", "BadOrigin")
        self.register(para_id, manager, deposit)
        return self._weight(15_000_000, 3, 3, proof_size=3_000)

    def cleanup_published_data(self, origin: Origin, para_id: int) -> Weight:
        """Remove all that a publisher published, for its manager. It stays registered."""
        self._ensure_manager(origin, para_id)
        refuse_if(not self.published(para_id), "NoDataToCleanup")
        removed = self.remove_keys(para_id, self.published(para_id))
        self.deposit_event("DataCleanedUp", para_id)
        return self._weight(10_000_000 + removed * 5_000_000, 3, 3 + 2 * removed)

    def deregister_publisher(self, origin: Origin, para_id: int) -> Weight:
        """End a publisher for its manager, who gets the deposit back."""
        self._ensure_manager(origin, para_id)
        return self.deregister(para_id)

    def force_deregister_publisher(self, origin: Origin, para_id: int) -> Weight:
        """End a publisher for governance.

        Scenario: Publisher Deregistration / Force deregistration by governance
        """
        refuse_if(origin.kind != "root", "BadOrigin")
        refuse_if(self.registration(para_id) is None, "NotRegistered")
        return self.deregister(para_id, slashes=self.config.slash_on_force)

    def delete_keys(self, origin: Origin, keys: list[bytes], publisher: int | None) -> Weight:
        """Delete keys for the parachain that published them, or for its manager. Keys that are not there are skipped.

        DECISION: the manager names the publisher, a repeated key counts once, and without a hit there is no event.

        Scenario: Manual Key Deletion / Parachain self-deletion
        """
        if origin.kind == "parachain":
            refuse_if(publisher not in (None, origin.who), "NotOwner")
            publisher = int(origin.who)
            refuse_if(not self._may_publish(publisher), "NotRegistered")
        else:
            refuse_if(origin.kind != "signed", "BadOrigin")
            if publisher is None:
                raise Refused("CannotBeMeant")
            self._ensure_manager(origin, publisher)
        removed = self.remove_keys(publisher, keys)
        if removed:
            self.deposit_event("KeysDeleted", publisher, removed)
        return self._weight(0, 2 + len(keys), 1 + 2 * len(keys))

    def force_delete_keys(self, origin: Origin, publisher: int, keys: list[bytes]) -> Weight:
        """Delete keys of any publisher for governance. DECISION: system parachains need not be registered here either.

        Scenario: Manual Key Deletion / Governance force-deletion
        """
        refuse_if(origin.kind != "root", "BadOrigin")
        refuse_if(not self._may_publish(publisher), "NotRegistered")
        removed = self.remove_keys(publisher, keys)
        if removed:
            self.deposit_event("KeysForcedDeleted", publisher, removed)
        return self._weight(0, 1 + len(keys), 1 + 2 * len(keys))

    def _ensure_manager(self, origin: Origin, para_id: int) -> None:
        refuse_if(origin.kind != "signed", "BadOrigin")
        publisher = self.registration(para_id)
        if publisher is None:
            raise Refused("NotRegistered")
        refuse_if(publisher["manager"] != origin.who, "NotManager")

    def _may_publish(self, para_id: int) -> bool:
        return para_id < FIRST_PUBLIC_ID or self.registration(para_id) is not None

    def _weight(self, base: int, reads: int, writes: int, *, proof_size: int = 0) -> Weight:
        return {"ref_time": self.database(base, reads, writes), "proof_size": proof_size}

    # Expiry

    def on_idle(self, remaining: int) -> int:
        """Remove expired entries in the time that is left of a block; return the time used.

        DECISION: entries with a time to live are scanned in the order of their raw keys, from the cursor on, and each
        is charged, expired or not. A cursor whose key was deleted still marks the position.

        Scenario: TTL Expiration / Key expires
        Scenario: TTL Expiration / Partial cleanup under weight limit
        """
        used, each = self.database(0, 1, 0), self.database(0, 2, 4)
        if used > remaining:
            return 0
        last = self.state.get("TtlScanCursor")
        after = self.state.key("TtlData", *last) if last else b""
        waiting = [key for key in self.state.raw_keys("TtlData") if key > after]
        for scanned, key in enumerate(waiting):
            if scanned >= self.config.max_ttl_scans_per_idle or used + each > remaining:
                break
            used += each
            last = _publisher_and_key(key)
            if self.is_expired(*last):
                self.remove_keys(last[0], [last[1]])
                self.deposit_event("KeyExpired", *last)
        else:
            last = None  # all are scanned: the next scan starts over
        self.state.put("TtlScanCursor", last)
        return used

    def is_expired(self, para_id: int, key: bytes) -> bool:
        """Return whether an entry has expired: at ``when_inserted + ttl``, or at the highest block number.

        DECISION: the sum saturates, so that the longest time to live never ends early.
        """
        times = self.state.get("TtlData", para_id, key)
        expiry: int = min(times["when_inserted"] + times["ttl"], U32_MAX)
        return self.block >= expiry


def _size(entry: bytes) -> int:
    return KEY_BYTES + len(decode("PublishedEntry", entry)["value"])


def _publisher_and_key(raw_key: bytes) -> tuple[int, bytes]:
    """Decode the publisher and the key at the end of each hashed part of a raw key of ``TtlData``."""
    found: tuple[int, bytes] = decode("PublishedKey", raw_key[40:44] + raw_key[-32:])
    return found
