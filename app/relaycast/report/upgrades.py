"""Runtime upgrades in a report: a sentence about all of them, and a row for each."""

from relaycast.terminal import counted
from relaycast_ledger.outcome import Outcome, UpgradeOutcome

MAX_NAMED = 8
"""Blocks that the sentence names."""


def upgrade_sentence(run: Outcome) -> str:
    """Return a sentence about the upgrades, with a space before it; empty without upgrades."""
    upgrades = run.upgrades or ()
    if not upgrades:
        return ""
    blocks = [str(it.at) for it in upgrades]
    named = ", ".join(blocks[:MAX_NAMED])
    more = f" and {counted(len(blocks) - MAX_NAMED, 'later block')}" if len(blocks) > MAX_NAMED else ""
    chains = counted(len({it.para_id for it in upgrades}), "chain")
    where = "relay block" if len(blocks) == 1 else "relay blocks"
    return f" {counted(len(blocks), 'runtime upgrade')} changed the code of {chains}, on {where} {named}{more}."


def upgrade_rows(run: Outcome) -> list[tuple[int, str, str]]:
    """Return the relay block, the chain and the changes of each upgrade."""
    return [(it.at, chain_of(it), "; ".join(it.changes)) for it in run.upgrades or ()]


def upgrade_marks(run: Outcome) -> dict[int, str]:
    """Return the changes by relay block, for charts."""
    found: dict[int, str] = {}
    for at, chain, changes in upgrade_rows(run):
        before = f"{found[at]}; " if at in found else ""
        found[at] = f"{before}upgrade of {chain} on relay block {at}: {changes}"
    return found


def chain_of(upgrade: UpgradeOutcome) -> str:
    """Return the upgraded chain, as tables name it."""
    return "relay chain" if upgrade.para_id is None else str(upgrade.para_id)
