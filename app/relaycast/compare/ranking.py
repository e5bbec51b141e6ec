"""Every policy on one trace: which makes a reader's blocks smallest without losing anything.

Each policy replaces the scenario's own alone. What counts is all that a reader's blocks carry over the run, before
compression. A design that loses values, leaves some behind, breaks an invariant, starves a reader or does not fit into
blocks is *unsound* for that reader: it is listed and never chosen.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from relaycast.compare.comparison import Design, DesignFigures, measure
from relaycast.refusal import BadInput
from relaycast.scenario.limit_checks import check_cache_limits
from relaycast.scenario.policy_choice import KINDS, names_of
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.sources import Sources
from relaycast.terminal import counted
from relaycast_trie.engine import Engine

AS_IT_IS = "as it is"

WORTH_SAYING = 0.001
"""Share of bytes below which two designs carry as much."""


class Ranked(Struct, frozen=True, kw_only=True):
    """Figures of one policy, for one reader or for all readers together."""

    policy: str
    pov_bytes: int
    """Bytes that all blocks of the run carry, before compression."""

    compressed_bytes: int
    change: float
    """Share of bytes more, or below 0 fewer, than the scenario's own policies."""

    told_again: int
    latency_p99: int | None
    unsound: str = ""
    """The reason why the policy is never chosen; empty if it is sound."""


class Ranking(Struct, frozen=True, kw_only=True):
    """The policies that were run, for each of ``readers`` and for all readers together, the fewest bytes first."""

    scenario: str
    policies: str
    """The scenario's own."""

    blocks: int
    names: dict[int, str]
    refused: list[str]
    """Policies that were not run: the scenario limits cached bytes, and they cannot."""

    together: list[Ranked]
    readers: dict[int, list[Ranked]]


def alternatives(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Yield the scenario as it is, and with each other policy in place of its own, without those that it refuses."""
    yield AS_IT_IS, scenario
    for policy, one in _others(scenario):
        if not _is_refused(one):
            yield policy, one


def _others(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    names = names_of(scenario.policies)
    for kind, choices in KINDS.items():
        for name in choices:
            if name != str(names[kind]).partition(":")[0]:
                yield f"{kind}={name}", replace(scenario, policies=replace(scenario.policies, **{kind: name}))


def _is_refused(scenario: Scenario) -> bool:
    try:
        check_cache_limits(scenario, "policies")
    except BadInput:
        return True
    return False


def ranking(scenario: Scenario, designs: Sequence[tuple[str, Design]]) -> Ranking:
    """Rank designs that were measured, the scenario's own first among them."""
    names = {chain.id: chain.name for chain in scenario.subscribers()}
    base = designs[0][1]
    readers = {}
    for para_id in names:
        own = base.subscribers[para_id].pov_bytes.total
        readers[para_id] = _ordered(_ranked(policy, [para_id], it, own) for policy, it in designs)
    own = sum(base.subscribers[para_id].pov_bytes.total for para_id in names)
    return Ranking(
        scenario=scenario.name,
        policies=base.policies,
        blocks=scenario.blocks,
        names=names,
        refused=[policy for policy, one in _others(scenario) if _is_refused(one)],
        together=_ordered(_ranked(policy, list(names), it, own) for policy, it in designs),
        readers=readers,
    )


def measured(
    scenario: Scenario, *, trie_engine: Engine = "auto", progress: Callable[[str], object] = lambda _: None
) -> list[tuple[str, Design]]:
    """Run every alternative; ``progress`` is called with the name of each before it begins."""
    found, sources = [], Sources.of(scenario.with_copies()).for_many_runs(scenario)
    for policy, one in alternatives(scenario):
        progress(policy)
        found.append((policy, measure(one, trie_engine=trie_engine, sources=sources)))
    return found


def _ranked(policy: str, readers: list[int], design: Design, own: int) -> Ranked:
    figures = [design.subscribers[para_id] for para_id in readers]
    total = sum(it.pov_bytes.total for it in figures)
    return Ranked(
        policy=policy,
        pov_bytes=total,
        compressed_bytes=sum(it.compressed_bytes.total for it in figures),
        change=total / own - 1 if own else 0.0,
        told_again=sum(it.redeliveries for it in figures),
        latency_p99=max((it.latency_blocks.p99 for it in figures if it.latency_blocks.p99 is not None), default=None),
        unsound=", ".join(dict.fromkeys(why for it in figures for why in _faults(it)))
        or next((f"breaks: {it.invariant}" for it in design.broken if {*it.subscribers} & {*readers}), ""),
    )


def _faults(it: DesignFigures) -> Iterator[str]:
    if it.lost_updates:
        yield f"loses {counted(it.lost_updates, 'value')}"
    if it.undelivered:
        yield f"leaves {counted(it.undelivered, 'value')} behind"
    if it.starvation is not UNSET and it.starvation.is_starved:
        yield "starves"
    if it.panics:
        yield f"panics in {counted(it.panics, 'block')}"
    if it.oversize_blocks:
        yield f"{counted(it.oversize_blocks, 'block')} too large"


def _ordered(ranked: Iterator[Ranked]) -> list[Ranked]:
    return sorted(ranked, key=lambda it: (bool(it.unsound), it.pov_bytes, it.policy != AS_IT_IS))


def best(ranked: Sequence[Ranked]) -> Ranked | None:
    """Return the sound design with the fewest bytes, or ``None`` if no design is sound.

    The scenario's own is the best where another saves next to nothing.
    """
    sound = [it for it in ranked if not it.unsound]
    own = next((it for it in sound if it.policy == AS_IT_IS), None)
    first = next(iter(sound), None)
    return own if own is not None and first is not None and first.change > -WORTH_SAYING else first


def apart(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return the sound designs whose figures differ from the scenario's own, and that one."""
    own = next(it for it in ranked if it.policy == AS_IT_IS)
    return [it for it in ranked if it is own or not (it.unsound or _is_same(it, own))]


def same_as_own(ranked: Sequence[Ranked]) -> list[str]:
    """Return the sound designs that change no figure."""
    own = next(it for it in ranked if it.policy == AS_IT_IS)
    return [it.policy for it in ranked if it is not own and not it.unsound and _is_same(it, own)]


def _is_same(one: Ranked, other: Ranked) -> bool:
    return replace(one, policy=other.policy) == other


def sentences(it: Ranking) -> list[str]:
    """Return what the ranking comes to: for all readers together, for each, and what is ruled out."""
    chosen = {para_id: best(ranked) for para_id, ranked in it.readers.items()}
    told = [f"For all readers together, {_verdict(best(it.together))}."]
    by_policy: dict[str, list[str]] = {}
    for para_id, one in chosen.items():
        text = "none" if one is None else one.policy
        by_policy.setdefault(text, []).append(f"{it.names[para_id] or para_id}{_share(one)}")
    if len(it.names) > 1:
        parts = [f"{policy} for {_listed(readers)}" for policy, readers in by_policy.items()]
        told.append(f"Best for each reader: {'; '.join(parts)}.")
    ruled_out = [f"{one.policy} ({one.unsound})" for one in it.together if one.unsound]
    told.append(f"Ruled out: {'; '.join(ruled_out)}." if ruled_out else "No policy loses or breaks anything.")
    if it.refused:
        told.append(f"Not run: {', '.join(it.refused)} (cannot limit cached bytes, as max_cached_bytes asks).")
    return told


def _verdict(one: Ranked | None) -> str:
    if one is None:
        return "no policy is sound: each loses or breaks something"
    if one.policy == AS_IT_IS:
        return "no other policy is cheaper"
    return f"{one.policy} is the cheapest: blocks carry {-one.change:.1%} fewer bytes than as it is"


def _share(one: Ranked | None) -> str:
    return "" if one is None or one.policy == AS_IT_IS else f" ({one.change:+.1%})"


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"
