"""The vectors that ship are those that tests yield; the suite covers each scenario, cause, event and storage item."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from pallets.block_vectors import BlockVector, event_names, key_of, prune, recomputed
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import StorageDoubleMap, StorageMap, StorageValue
from relaycast_pallets.subscriber.plan import FairCursor, Turn
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_spec.vectors import DOCUMENT, README, kind_of
from spec_coverage import titles
from vector_fields import LARGEST_PLAIN_NUMBER, VectorWeight, number, unhexed
from yielded_vectors import SCHEMA, packed, schema, shipped_files, shipped_vectors_of

KIND_OF = {
    "Publisher Registration": "broadcaster",
    "Publisher Deregistration": "broadcaster",
    "XCM Publish Instruction": "broadcaster",
    "AllowPublishFrom Barrier": "xcm",
    "Data Storage Limits": "broadcaster",
    "TTL Expiration": "broadcaster",
    "Manual Key Deletion": "broadcaster",
    "Relay Proof Collection": "proofs",
    "Subscription Handler": "subscriber",
    "Change Detection": "subscriber",
    "Trie Depth Limit": "subscriber",
    "Trie Node Caching": "subscriber",
    "PoV Budget Constraint": "subscriber",
    "Publisher Prioritization": "subscriber",
    "Proof Processing": "subscriber",
}
"""Which kind of vectors executes the scenarios of a requirement."""


@cache
def files() -> dict[str, Any]:
    """Return the files of vectors, read as JSON, by path."""
    return {path: json.loads(data) for path, data in shipped_files().items() if kind_of(path) != DOCUMENT}


def all_vectors() -> Iterator[dict[str, Any]]:
    for file in files().values():
        yield from file["vectors"]


@pytest.fixture(scope="module")
def blocks() -> list[BlockVector]:
    return shipped_vectors_of("subscriber")


def named(blocks: list[BlockVector], name: str) -> BlockVector:
    return next(it for it in blocks if it.id == f"subscriber/{name}")


def test_the_vectors_that_ship_are_all_that_tests_yield_in_the_same_bytes() -> None:
    made = packed()
    shipping = {path: data for path, data in shipped_files().items() if path in made or kind_of(path) != DOCUMENT}
    assert made.keys() == shipping.keys()
    assert [path for path in made if made[path] != shipping[path]] == []


# All kinds


@pytest.mark.slow
def test_every_file_follows_the_schema(conformance_suite: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    for file in [json.loads((conformance_suite / "suite.json").read_bytes()), *files().values()]:
        validator.validate(file)


@pytest.mark.parametrize("missing", ["expect", "why", "source"])
def test_the_schema_refuses_a_vector_without_what_it_must_have(missing: str) -> None:
    file = json.loads(shipped_files()["xcm/executions.json"])
    del file["vectors"][0][missing]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json.loads(shipped_files()[SCHEMA])).validate(file)


def test_every_vector_says_once_who_it_is_and_why() -> None:
    ids = [vector["id"] for vector in all_vectors()]
    assert len(set(ids)) == len(ids)
    for path, file in files().items():
        for vector in file["vectors"]:
            assert vector["id"].startswith(f"{file['kind']}/"), path
            assert "\n" not in vector["why"]
            assert set(vector["source"]) in (
                {"requirement", "scenario"}, {"invariant"}, {"attack"}, {"trap"}, {"upstream"}
            )  # fmt: skip


def test_no_number_is_rounded_by_a_reader_of_floats() -> None:
    def whole(text: str) -> int:
        assert abs(int(text)) <= LARGEST_PLAIN_NUMBER
        return int(text)

    for path, data in shipped_files().items():
        if path.endswith(".json"):
            json.loads(data, parse_int=whole)


@pytest.mark.parametrize("kind", ["subscriber", "broadcaster", "xcm", "proofs"])
def test_every_scenario_of_a_kind_has_a_vector_of_that_kind(kind: str) -> None:
    wanted = {title for title in titles() if KIND_OF[title.partition(" / ")[0]] == kind}
    sources = [vector["source"] for vector in all_vectors() if vector["id"].startswith(f"{kind}/")]
    covered = {f"{source['requirement']} / {source['scenario']}" for source in sources if "scenario" in source}
    assert wanted <= covered <= set(titles())


def test_a_policy_is_named_where_the_configuration_differs() -> None:
    for path, file in files().items():
        for vector in file["vectors"] if path.startswith("broadcaster/") else ():
            config, policies = vector["config"], vector.get("policies", {})
            assert policies.get("registration", "public") == config["registration"]
            assert policies.get("ttl_key_hasher", "Twox64Concat") == config["ttl_key_hasher"]
            assert (policies.get("slash_on_force") == "true") == config["slash_on_force"]


# Blocks of a subscriber


def test_blocks_come_from_every_kind_of_source(blocks: list[BlockVector]) -> None:
    kinds = Counter(next(iter(msgspec.to_builtins(it.source))) for it in blocks)
    assert {kind: count >= 5 for kind, count in kinds.items()} == dict.fromkeys(
        ["requirement", "invariant", "attack", "trap", "upstream"], True
    )
    invariants = {it.source.invariant for it in blocks} - {None}
    assert invariants == {1, 2, 3, 4, 6, 8}  # the lies show 5 and 7: a refused block keeps nothing
    assert len(blocks) >= 1_000


def test_every_cause_of_a_panic_and_every_event_of_a_pass_appears(blocks: list[BlockVector]) -> None:
    assert {it.expect.panic.cause for it in blocks if it.expect.panic} == {
        "DuplicateNode",
        "RootMismatch",
        "MissingNode",
        "InvalidNode",
        "InvalidChildRoot",
        "UnusedNodes",
        "IncompleteBelowLimit",
    }
    names = event_names()
    assert {names[index] for index in events_in(blocks)} == set(names.values()) - {"KeysSubscribed", "KeysUnsubscribed"}


def events_in(blocks: list[BlockVector]) -> set[int]:
    return {unhexed(event)[0] for it in blocks for event in it.expect.events or ()}


def test_every_storage_item_occurs_before_a_block_and_after_one(blocks: list[BlockVector]) -> None:
    before = {key[:66] for it in blocks for key, _ in it.before}
    after = {key[:66] for it in blocks for key, _ in it.expect.after or ()}
    assert before == after
    assert len(after) == 11


def test_new_events_come_after_the_known_ones() -> None:
    """The README gives the index of each, and readers hard-code it."""
    assert event_names() == dict(
        enumerate(
            [
                "DataProcessed",
                "EntryUndecodable",
                "KeyBeyondBudget",
                "PublisherRootCleared",
                "PublisherDisabled",
                "PublisherEnabled",
                "PublisherCacheCleared",
                "KeysSubscribed",
                "KeysUnsubscribed",
                "DataDeleted",
                "CallbackBeyondLimit",
                "CallbackOverweight",
            ]
        )
    )


def test_the_page_gives_every_storage_item_and_every_event_that_vectors_hold(blocks: list[BlockVector]) -> None:
    readme = shipped_files()[README].decode()
    storage = SubscriberStorage(State())
    items = [it for it in vars(storage).values() if isinstance(it, StorageValue | StorageMap | StorageDoubleMap)]
    assert len(items) == 12
    for it in items:
        assert f"| `{it.name[1]}` | `{it.prefix[16:].hex()}` |" in readme
    held = events_in(blocks)
    for index, name in event_names().items():
        assert (f"| {index} | `{name}`" in readme) is (index in held)


def test_an_honest_block_never_panics_and_is_given_what_prune_keeps(blocks: list[BlockVector]) -> None:
    """Both modes over the vector alone: the same nodes, weight, cursor and owed key (invariant 1)."""
    honest = [it for it in blocks if it.collected is not None]
    assert len(honest) > 800
    for it in honest:
        kept, pruning = prune(it)
        assert it.given == it.pruned == kept
        assert not it.expect.panic
        assert it.expect.consumed == VectorWeight.of(pruning.consumed)
        turn = [key_of(at) for at in (pruning.turn.stopped_at, pruning.turn.cursor, pruning.turn.deferred_key)]
        assert [it.expect.stopped_at, it.expect.cursor, it.expect.owed] == turn


def test_what_is_consumed_stays_within_the_budget_and_callbacks_within_their_limit(blocks: list[BlockVector]) -> None:
    weighed = [it for it in blocks if it.config.callback_limit and it.expect.callback_weight]
    assert len(weighed) > 15
    for it in blocks:
        if it.expect.consumed:
            assert it.expect.consumed.weight().all_lte(it.budget.weight()), it.id
        if it.config.callback_limit and it.expect.callback_weight:
            assert it.expect.callback_weight.weight().all_lte(it.config.callback_limit.weight()), it.id


def test_lies_are_refused_unless_they_are_none_or_hide_in_the_last_read(blocks: list[BlockVector]) -> None:
    lies = [it for it in blocks if it.source.attack]
    accepted = [it for it in lies if not it.expect.panic]
    assert len(lies) > 150
    assert 5 < len(accepted) < 20
    for it in accepted:
        assert it.source.attack == "reorder" or not it.expect.complete, it.id


def test_a_vector_whose_modes_differ_is_not_yielded(blocks: list[BlockVector], monkeypatch: pytest.MonkeyPatch) -> None:
    it = named(blocks, "scenarios/exhausted")
    after, calls = FairCursor.after, iter(range(2))
    monkeypatch.setattr(FairCursor, "after", lambda self, at: Turn(at, None) if next(calls) else after(self, at))
    with pytest.raises(AssertionError, match="PRUNE"):
        recomputed(it)


def test_numbers_above_two_to_the_53_are_text(blocks: list[BlockVector]) -> None:
    it = named(blocks, "scenarios/meter/unlimited")
    assert it.budget == VectorWeight(str(2**64 - 1), str(2**64 - 1))
    assert number(2**53) == 2**53
