"""Publications through XCM: who may publish, the limits and their equality, and what a publication writes."""

from collections.abc import Iterator

import msgspec

from relaycast.vectors.broadcaster.broadcaster_vector import BroadcasterVector
from relaycast.vectors.broadcaster.step_sequence import StepSequence, key, with_limits
from relaycast.vectors.vector import VectorSource, scenario
from relaycast_xcm.instructions import ClearOrigin, DescendOrigin, Instruction, Publish, SetTopic
from relaycast_xcm.junctions import PalletInstance

VALUE_LENGTHS = (0, 1, 22, 23, 24, 25, 31, 32, 33, 63, 64, 65, 255, 256, 1_024, 2_047, 2_048)
"""Around the bounds of compact lengths, and of 23 bytes, the longest value that stays in its node."""

_SUCCESS = scenario("XCM Publish Instruction / Successful publish")
_UNREGISTERED = scenario("XCM Publish Instruction / Publish fails for unregistered public parachain")
_SYSTEM = scenario("Publisher Registration / System parachain publishes without registration")
_TOO_MANY = scenario("Data Storage Limits / Key count limit")
_TOO_LARGE = scenario("Data Storage Limits / Value size limit")
_TOO_MUCH = scenario("Data Storage Limits / Total storage size limit")


def vectors(seed: int) -> Iterator[BroadcasterVector]:
    """Yield the vectors; none is drawn from ``seed``."""
    del seed
    yield from _single()
    yield from _publishers()
    yield from _value_lengths()
    yield from _key_limits()
    yield from _total_limits()
    yield from _updates()
    yield from _messages()
    yield from _barred()


def _there(**limits: int) -> StepSequence:
    return with_limits(**limits).register(2_000)


def _single() -> Iterator[BroadcasterVector]:
    zeros = Publish(bytes(32), b"\x01\x02\x03", 0)
    yield (
        _there()
        .begin()
        .message(2_000, zeros)
        .vector("publish/scenario", "the key is stored as its 32 bytes, not hashed again", _SUCCESS)
    )
    for name, published in (("ones", b"\xff" * 32), ("ab", b"\xab" * 32), ("last-bit", bytes(31) + b"\x01")):
        yield (
            _there()
            .begin()
            .message(2_000, Publish(published, b"\x01", 0))
            .vector(f"publish/key-{name}", "any 32 bytes are a key", VectorSource(upstream="publish_32_byte_key_works"))
        )
    finite = scenario("XCM Publish Instruction / Publish with finite TTL")
    for ttl in (1, 1_000, (1 << 32) - 1):
        yield (
            _there()
            .begin()
            .at(1_000)
            .publish(2_000, "a", b"\x01", ttl=ttl)
            .vector(f"publish/ttl-{ttl}", f"a time to live of {ttl} is stored with the block", finite)
        )
    late = _there().begin().at((1 << 32) - 1).publish(2_000, "a", b"\x01", ttl=(1 << 32) - 1)
    yield late.vector("publish/ttl-and-block-u32", "the largest block and the largest time to live", finite)


def _publishers() -> Iterator[BroadcasterVector]:
    for para_id in (0, 1_000, 1_999):
        yield (
            StepSequence()
            .publish(para_id, "a", b"\x01")
            .vector(f"publish/system-{para_id}", f"system parachain {para_id} publishes unregistered", _SYSTEM)
        )
    for para_id in (2_000, 3_000, (1 << 32) - 1):
        yield (
            StepSequence()
            .publish(para_id, "a", b"\x01")
            .vector(f"publish/unregistered-{para_id}", f"public parachain {para_id} is not registered", _UNREGISTERED)
        )
    yield (
        StepSequence()
        .publish(3_000, "a", bytes(2_048))
        .vector("publish/unregistered-first", "NotRegistered comes before the limits", _UNREGISTERED)
    )
    three = StepSequence().register(2_000).register(2_001).begin()
    for para_id in (2_000, 2_001, 1_000):
        three.publish(para_id, "a", para_id.to_bytes(2, "big"))
    yield three.vector(
        "publish/three-publishers",
        "one key by three publishers: three child tries",
        VectorSource(upstream="multiple_publishers_in_same_block"),
    )


def _value_lengths() -> Iterator[BroadcasterVector]:
    lengths = VectorSource(trap="values up to 23 bytes stay in their node, because the entry has 9 bytes more")
    for length in VALUE_LENGTHS:
        value = bytes(at % 251 for at in range(length))
        yield (
            _there()
            .begin()
            .publish(2_000, "a", value)
            .vector(f"publish/length-{length}", f"a value of {length} bytes", lengths)
        )
    for limit in (0, 1, 64, 2_047):
        at_limit, above = bytes(limit), bytes(limit + 1)
        yield (
            _there(max_value_length=limit)
            .begin()
            .publish(2_000, "a", at_limit)
            .vector(f"publish/value-at-limit-{limit}", f"{limit} bytes where {limit} are allowed", _TOO_LARGE)
        )
        yield (
            _there(max_value_length=limit)
            .begin()
            .publish(2_000, "a", above)
            .vector(f"publish/value-above-limit-{limit}", f"{limit + 1} bytes where {limit} are allowed", _TOO_LARGE)
        )
    update = _there(max_value_length=8).publish(2_000, "a", b"12345678").begin().publish(2_000, "a", b"123456789")
    yield update.vector("publish/value-above-limit-update", "an update is bound by the limit, too", _TOO_LARGE)
    first = _there(max_value_length=8, max_stored_keys=0).begin().publish(2_000, "a", b"123456789")
    yield first.vector("publish/value-before-keys", "ValueTooLarge comes before TooManyKeys", _TOO_LARGE)


def _key_limits() -> Iterator[BroadcasterVector]:
    for limit in (0, 1, 2, 5):
        there = _there(max_stored_keys=limit)
        for name in "abcde"[:limit]:
            there.publish(2_000, name, name.encode())
        yield (
            there.begin()
            .publish(2_000, "new", b"\x01")
            .vector(f"publish/keys-above-limit-{limit}", f"a new key where {limit} are stored and allowed", _TOO_MANY)
        )
        if limit:
            yield (
                there.begin()
                .publish(2_000, "a", b"\x02\x03")
                .vector(f"publish/keys-update-at-limit-{limit}", "an update is no new key", _TOO_MANY)
            )
    freed = _there(max_stored_keys=2).publish(2_000, "a", b"\x01").publish(2_000, "b", b"\x01").begin()
    yield (
        freed.delete(2_000, "a")
        .publish(2_000, "c", b"\x01")
        .vector("publish/keys-freed", "a deleted key makes room for another one", _TOO_MANY)
    )
    both = _there(max_stored_keys=1, max_total_storage_size=33).publish(2_000, "a", b"\x01").begin()
    yield both.publish(2_000, "b", b"\x01").vector(
        "publish/keys-before-total", "TooManyKeys comes before TotalStorageSizeExceeded", _TOO_MANY
    )
    other = with_limits(max_stored_keys=1).register(2_000).register(2_001).publish(2_000, "a", b"\x01").begin()
    yield other.publish(2_001, "a", b"\x01").vector(
        "publish/keys-of-each", "the limit holds for each publisher alone", _TOO_MANY
    )


def _total_limits() -> Iterator[BroadcasterVector]:
    quota = scenario("XCM Publish Instruction / Publish fails when storage limit exceeded")
    used = _there(max_total_storage_size=100).publish(2_000, "a", bytes(68)).begin()
    yield used.publish(2_000, "b", b"").vector("publish/total-used-up", "32 bytes of key alone are too many", quota)
    for limit, length in ((32, 0), (33, 1), (100, 68), (2_080, 2_048)):
        yield (
            _there(max_total_storage_size=limit)
            .begin()
            .publish(2_000, "a", bytes(length))
            .vector(f"publish/total-equal-{limit}", f"32 + {length} bytes where {limit} are allowed", _TOO_MUCH)
        )
        yield (
            _there(max_total_storage_size=limit - 1)
            .begin()
            .publish(2_000, "a", bytes(length))
            .vector(f"publish/total-above-{limit - 1}", f"32 + {length} bytes where {limit - 1} are allowed", _TOO_MUCH)
        )
    for name, length, why in (
        ("shrinks", 10, "an update that shrinks the total is allowed at the limit"),
        ("equal", 68, "an update that keeps the total is allowed at the limit"),
        ("grows", 69, "an update that grows the total beyond the limit is refused"),
    ):
        there = _there(max_total_storage_size=100).publish(2_000, "a", bytes(68)).begin()
        yield there.publish(2_000, "a", b"\x01" * length).vector(f"publish/total-{name}", why, _TOO_MUCH)
    yield from _lowered_limits()
    upstream = VectorSource(upstream="total_storage_size_limit_enforced")
    draft = _there(max_value_length=1_024, max_total_storage_size=2_048, max_stored_keys=50).begin()
    draft.publish(2_000, "key1", bytes(1_024)).publish(2_000, "key2", bytes(1_024))
    draft.publish(2_000, "key1", bytes(100)).publish(2_000, "key2", bytes(900))
    yield draft.vector("publish/total-of-the-draft", "the figures of the draft's test", upstream)


def _lowered_limits() -> Iterator[BroadcasterVector]:
    """Yield publications of a publisher that stores 300 bytes, where the limit has become 100."""
    for name, published, length, why in (
        ("shrinks", "a", 67, "an update that shrinks a total above the limit is allowed, although it stays above"),
        ("shrinks-below", "b", 0, "an update brings the total from above the limit to below it"),
        ("equal", "a", 68, "an update that keeps a total above the limit is allowed"),
        ("grows", "a", 69, "an update that grows a total above the limit is refused"),
        ("new-key", "c", 0, "a new key grows a total above the limit"),
    ):
        there = _there().publish(2_000, "a", bytes(68)).publish(2_000, "b", bytes(168)).begin()
        limit = 132 if name == "shrinks-below" else 100
        there.limits = msgspec.structs.replace(there.limits, max_total_storage_size=limit)
        there.publish(2_000, published, b"\x01" * length)
        yield there.vector(f"publish/lowered-limit-{name}", why, _TOO_MUCH)


def _updates() -> Iterator[BroadcasterVector]:
    updates = VectorSource(upstream="publish_store_retrieve_and_update_data")
    yield (
        _there()
        .publish(2_000, "a", b"\x01")
        .begin()
        .at(7)
        .publish(2_000, "a", b"\x01")
        .vector("publish/same-value", "an equal value is written with the new block: the root changes", updates)
    )
    yield (
        _there()
        .publish(2_000, "a", b"\x01")
        .begin()
        .publish(2_000, "a", b"\x01")
        .vector("publish/same-value-and-block", "an equal value in the same block: nothing but an event", updates)
    )
    longer = _there().publish(2_000, "a", b"\x01").begin().publish(2_000, "a", bytes(24)).publish(2_000, "a", b"\x02")
    yield longer.vector("publish/out-of-its-node", "a value leaves its node and comes back", updates)
    three = _there().publish(2_000, "key1", b"1").publish(2_000, "key2", b"2").begin()
    yield (
        three.publish(2_000, "key1", b"3")
        .publish(2_000, "key3", b"4")
        .vector("publish/update-and-add", "an update, a new key, and one that stays", updates)
    )
    for name, before, after in (("finite-to-infinite", 100, 0), ("infinite-to-finite", 0, 500), ("longer", 5, 9)):
        there = _there().publish(2_000, "a", b"\x01", ttl=before).begin().at(3)
        source = (
            scenario("TTL Expiration / TTL change from finite to infinite")
            if not after
            else VectorSource(upstream="ttl_infinite_to_finite")
        )
        yield there.publish(2_000, "a", b"\x01", ttl=after).vector(
            f"publish/ttl-{name}", f"a time to live of {before} becomes {after}", source
        )


def _messages() -> Iterator[BroadcasterVector]:
    many = scenario("AllowPublishFrom Barrier / Barrier allows multiple Publish instructions within limit")
    one = scenario("AllowPublishFrom Barrier / Barrier allows single Publish instruction")
    yield (
        _there()
        .begin()
        .publish(2_000, "a", b"\x01")
        .vector("publish/message-of-one", "a message of one Publish runs without payment", one)
    )
    yield (
        _there()
        .begin()
        .message(2_000, *_instructions("abc"))
        .vector("publish/message-of-three", "all three instructions run", many)
    )
    repeated = (Publish(key("a"), b"\x01"), Publish(key("a"), b"\x02", 9))
    yield (
        _there()
        .begin()
        .message(2_000, *repeated)
        .vector("publish/message-repeats-key", "the last value of a key wins", many)
    )
    failing = VectorSource(upstream="broadcast_handler_error_propagates")
    for at in range(3):
        values = [b"\x01", b"\x02", b"\x03"]
        values[at] = bytes(9)
        sent = [Publish(key(name), value) for name, value in zip("abc", values, strict=True)]
        yield (
            _there(max_value_length=8)
            .begin()
            .message(2_000, *sent)
            .vector(
                f"publish/message-fails-at-{at}",
                f"instruction {at} of 3 is refused: earlier ones stay, later ones do not run and are not paid",
                failing,
            )
        )
    full = _there(max_stored_keys=2).begin().message(2_000, *_instructions("abc"))
    yield full.vector("publish/message-fills", "the third key of a message is one too many", failing)
    yield (
        StepSequence()
        .message(2_000, *_instructions("ab"))
        .vector("publish/message-unregistered", "the first instruction is refused", _UNREGISTERED)
    )


def _barred() -> Iterator[BroadcasterVector]:
    exact = scenario("AllowPublishFrom Barrier / Barrier allows exactly max Publish instructions")
    above = scenario("AllowPublishFrom Barrier / Barrier rejects too many Publish instructions")
    mixed = scenario("AllowPublishFrom Barrier / Barrier rejects Publish mixed with other instructions")
    yield (
        _there(max_publish_instructions=4)
        .begin()
        .message(2_000, *_instructions("abcd"))
        .vector("publish/barrier-exact", "4 instructions where 4 are allowed", exact)
    )
    yield (
        _there(max_publish_instructions=4)
        .begin()
        .message(2_000, *_instructions("abcde"))
        .vector("publish/barrier-above", "5 instructions where 4 are allowed: nothing runs", above)
    )
    for name, other in (
        ("set-topic", SetTopic(bytes(32))),
        ("clear-origin", ClearOrigin()),
        ("descend-origin", DescendOrigin((PalletInstance(1),))),
    ):
        yield (
            _there()
            .begin()
            .message(2_000, *_instructions("a"), other)
            .vector(f"publish/barrier-{name}", f"a Publish before {name} is no message of Publish alone", mixed)
        )
    yield (
        _there()
        .begin()
        .message(2_000)
        .vector(
            "publish/barrier-empty",
            "an empty message has no form",
            VectorSource(upstream="allow_publish_from_rejects_empty_message"),
        )
    )


def _instructions(names: str) -> list[Instruction]:
    return [Publish(key(name), name.encode()) for name in names]
