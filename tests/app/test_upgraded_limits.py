"""Limits that come with a runtime upgrade."""

from pathlib import Path

import pytest

from command_line import Command

LIMITED = """
blocks = 20
[relaychain]
upgrades = [{ at = 8, max_publishes_per_block = 4 }]
[[parachains]]
id = 2000
publish = { keys = 10 }
[[parachains]]
id = 3000
subscribe = [{ publisher = 2000 }]
upgrades = [{ at = 6, max_cached_bytes = 600 }, { at = 12, max_total_keys = 10 }]
"""


def test_limits_can_come_with_an_upgrade(relaycast: Command, tmp_path: Path) -> None:
    (tmp_path / "limited.toml").write_text(LIMITED)
    ended = relaycast("run", "limited.toml", "--json").json
    assert ended["invariants"]["ok"]
    assert ended["publishers"][0]["refused_messages"] > 0  # only from block 8 on: what came before is whole
    assert ended["publishers"][0]["published"] >= 7 * 10
    assert ended["subscribers"][0]["told_again"] > 0


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("max_total_keys = 10", "max_total_keys = 9", "upgrades[1].subscribe"),
        ("max_total_keys = 10", "max_subscribed_keys = 3", "upgrades[1].subscribe[0].keys"),
        ("max_total_keys = 10", 'policies = { metering = "carried" }', "max_cached_bytes"),
    ],
)
def test_an_upgrade_to_limits_that_do_not_hold_is_refused(
    relaycast: Command, tmp_path: Path, old: str, new: str, place: str
) -> None:
    (tmp_path / "limited.toml").write_text(LIMITED.replace(old, new))
    ended = relaycast("run", "limited.toml")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert place in ended.err
