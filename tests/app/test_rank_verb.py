"""``relaycast rank``: what every policy makes of a reader's blocks, and which is never chosen."""

from pathlib import Path

import pytest

from command_line import Command, Refused
from relaycast.compare.ranking import AS_IT_IS, Ranked, alternatives, best
from relaycast.scenario.files import load_preset
from relaycast.scenario.policy_choice import KINDS


def one(policy: str, pov_bytes: int, unsound: str = "") -> Ranked:
    return Ranked(
        policy=policy,
        pov_bytes=pov_bytes,
        compressed_bytes=0,
        change=pov_bytes / 1_000 - 1,
        told_again=0,
        latency_p99=None,
        unsound=unsound,
    )


@pytest.mark.parametrize(
    ("ranked", "chosen"),
    [
        ([one("b", 900), one(AS_IT_IS, 1_000)], "b"),
        ([one(AS_IT_IS, 1_000), one("b", 1_100)], AS_IT_IS),
        ([one("b", 1_000), one(AS_IT_IS, 1_000)], AS_IT_IS),
        ([one("c", 950), one(AS_IT_IS, 1_000), one("b", 10, "loses 1 value")], "c"),
        ([one("c", 1_200), one(AS_IT_IS, 1_000, "starves")], "c"),
        ([one(AS_IT_IS, 1_000, "starves")], None),
    ],
)
def test_the_cheapest_design_that_loses_nothing_is_chosen(ranked: list[Ranked], chosen: str | None) -> None:
    found = best(ranked)
    assert (None if found is None else found.policy) == chosen


def test_each_other_policy_is_tried_alone() -> None:
    tried = dict(alternatives(load_preset("oracle")))
    assert len(tried) == 1 + sum(len(choices) - 1 for choices in KINDS.values())
    assert tried["cache=none"].policies.cache == "none"
    assert tried["cache=none"].publishers() == tried[AS_IT_IS].publishers()


def test_the_answer_comes_first_and_the_table_below(relaycast: Command) -> None:
    ended = relaycast("rank", "oracle", "--blocks", "8")
    assert ended.code == 0
    text = " ".join(ended.out.split())
    assert text.startswith("For all readers together, cache=none is the cheapest: blocks carry ")
    assert "Best for each reader: cache=none for exchange (-" in text
    assert "Ruled out: root_commit=forget-unchanged (breaks: roots of unchanged publishers are kept)." in text
    assert "no difference: order=numeric" in text
    assert ended.err.splitlines()[0] == "relaycast: 8 blocks, as it is"


def test_readers_add_up_to_all_of_them(relaycast: Command) -> None:
    told = relaycast("rank", "oracle", "--blocks", "6", "--json").json
    together = {it["policy"]: it["pov_bytes"] for it in told["together"]}
    for policy, pov_bytes in together.items():
        found = [it["pov_bytes"] for ranked in told["readers"].values() for it in ranked if it["policy"] == policy]
        assert sum(found) == pov_bytes
    assert together[AS_IT_IS] > together["cache=none"]


def test_a_policy_that_the_limits_refuse_is_named_and_not_run(relaycast: Command, tmp_path: Path) -> None:
    file = tmp_path / "capped.toml"
    file.write_text(
        'extends = "oracle"\n[[parachains]]\nid = 2000\npublish = { keys = 20, value_bytes = 8 }\n'
        '[[parachains]]\nid = 3000\nsubscribe = [{ publisher = 2000, keys = "all" }]\nmax_cached_bytes = 20_000\n'
    )
    ended = relaycast("rank", str(file), "--blocks", "3")
    assert ended.code == 0
    assert "Not run: metering=carried (cannot limit cached bytes" in " ".join(ended.out.split())
    assert "metering=values-only" in ended.out


def test_what_cannot_be_ranked_is_refused(refused: Refused) -> None:
    assert "rank" in refused("rank", "nothing-of-that-name")
