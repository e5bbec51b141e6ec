"""``relaycast attack``: adversaries against a running network, and what they come to.

Exit code 1 says that an attack got through: others were harmed, or a lie went undetected.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter, validators

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json, TrieEngine
from relaycast.refusal import BadInput, nearest, shown

app = App(
    name="attack",
    help="Measure what an attack costs, what it harms and what helps: spam, crafted keys, lying collators and more.",
)

MAX_BLOCKS = 10_000
MAX_BUDGET_BYTES = 10 * 1024 * 1024
"""The largest PoV."""

MAX_CALLBACK_US = 10**9

AttackBlocks = Annotated[
    int, Parameter(name="--blocks", help="relay blocks", validator=validators.Number(gte=1, lte=MAX_BLOCKS))
]
AttackSeed = Annotated[
    int, Parameter(name="--seed", help="everything follows from it", validator=validators.Number(gte=0, lt=2**63))
]
Parachains = Annotated[
    int, Parameter(name="--parachains", help="how many send", validator=validators.Number(gte=1, lte=900))
]
Values = Annotated[
    int, Parameter(name="--values", help="bytes of each value", validator=validators.Number(gte=0, lte=2_048))
]
DepthBlocks = Annotated[
    int, Parameter(name="--blocks", help="relay blocks", validator=validators.Number(gte=9, lte=MAX_BLOCKS))
]
DepthLimit = Annotated[
    int,
    Parameter(name="--limit", help="the subscriber's MaxTrieDepth", validator=validators.Number(gte=4, lte=64)),
]
ChurnKeys = Annotated[
    int,
    Parameter(name="--keys", help="keys put in and taken out in a block", validator=validators.Number(gte=1, lte=256)),
]
ChurnBlocks = Annotated[
    int, Parameter(name="--blocks", help="relay blocks", validator=validators.Number(gte=10, lte=MAX_BLOCKS))
]
ChurnBudget = Annotated[
    int | None,
    Parameter(
        name="--budget",
        help="bytes that messages and pub-sub share in the subscriber's blocks, instead of 85% of a PoV",
        validator=validators.Number(gte=1, lte=MAX_BUDGET_BYTES),
    ),
]
HeavyKeys = Annotated[
    int,
    Parameter(name="--keys", help="keys that change in every block", validator=validators.Number(gte=1, lte=256)),
]
CallbackTime = Annotated[
    int,
    Parameter(
        name="--callback-us",
        help="microseconds that one callback takes",
        validator=validators.Number(gte=1, lte=MAX_CALLBACK_US),
    ),
]
CallbackLimit = Annotated[
    int,
    Parameter(
        name="--limit-us",
        help="microseconds that a block has for callbacks, 0 for no limit",
        validator=validators.Number(gte=0, lte=MAX_CALLBACK_US),
    ),
]
SquatEvery = Annotated[
    int,
    Parameter(
        name="--every",
        help="relay blocks from one removal to the next",
        validator=validators.Number(gte=1, lte=MAX_BLOCKS),
    ),
]
SquatBlocks = Annotated[
    int, Parameter(name="--blocks", help="relay blocks", validator=validators.Number(gte=8, lte=MAX_BLOCKS))
]
Samples = Annotated[
    int,
    Parameter(
        name="--samples",
        help="ways to tell each lie in each block, 0 for all there are",
        validator=validators.Number(gte=0, lte=1_000_000),
    ),
]
PriceBlocks = Annotated[
    int, Parameter(name="--blocks", help="relay blocks of each attack", validator=validators.Number(gte=2, lte=1_000))
]
PriceKeys = Annotated[
    int,
    Parameter(
        name="--keys",
        help="keys of the attacker that each subscriber reads, and that most attacks publish in a block",
        validator=validators.Number(gte=1, lte=256),
    ),
]
PricedAttacks = Annotated[
    list[str] | None,
    Parameter(
        name="ATTACK",
        help="attacks to price, by default all: spam, depth, deep-paths, churn, heartbeat, large-values, deletion, "
        "callbacks, metered-callbacks, squat, lies",
    ),
]


@dataclass(frozen=True, slots=True)
class AttackFlags:
    """Options of every attack."""

    seed: AttackSeed = 0
    trie_engine: TrieEngine = "auto"
    json: Json = False


Flags = Annotated[AttackFlags, Parameter(name="*")]
NO_FLAGS = AttackFlags()


@app.command
def spam(
    *, blocks: AttackBlocks = 12, parachains: Parachains = 8, values: Values = 2_048, flags: Flags = NO_FLAGS
) -> ExitCode:
    """Flood the relay chain with messages at the limits, and print what it spent and whether others were harmed.

    Others are a publisher and its subscriber, who are compared with the same run without the flood.

    Example: relaycast attack spam --parachains 16 --blocks 20
    """
    from relaycast.attacks import spam as attack  # noqa: PLC0415
    from relaycast.cli.tables.attack import print_spam  # noqa: PLC0415

    report = attack(
        blocks=blocks, parachains=parachains, value_bytes=values, seed=flags.seed, trie_engine=flags.trie_engine
    )
    derived = {"harmed": report.harmed, "block_fits_publishes": report.block_fits_publishes}
    return _told("spam", report, print_spam, flags, ok=not report.harmed, **derived)


@app.command
def depth(*, limit: DepthLimit = 16, blocks: DepthBlocks = 20, flags: Flags = NO_FLAGS) -> ExitCode:
    """Publish under keys made to exceed MaxTrieDepth, and print which block disables the attacker and what others got.

    Others are three publishers of the same subscriber, who are compared with the same run without the last crafted key.

    Example: relaycast attack depth --limit 8
    """
    from relaycast.attacks import depth as attack  # noqa: PLC0415
    from relaycast.cli.tables.attack import print_depth  # noqa: PLC0415

    report = attack(limit=limit, blocks=blocks, seed=flags.seed, trie_engine=flags.trie_engine)
    return _told("depth", report, print_depth, flags, ok=report.contained, harmed=report.harmed)


@app.command
def churn(
    *, keys: ChurnKeys = 64, blocks: ChurnBlocks = 20, budget: ChurnBudget = None, flags: Flags = NO_FLAGS
) -> ExitCode:
    """Put keys in and take them out beside subscribed ones, and print what that costs readers without a new value.

    Others are three publishers of the same subscriber, who are compared with the same run without the churned keys.
    They are harmed where the subscriber's budget is too small for both.

    Example: relaycast attack churn --keys 256 --budget 12000
    """
    from relaycast.attacks import churn as attack  # noqa: PLC0415
    from relaycast.cli.tables.attack import print_churn  # noqa: PLC0415

    report = attack(keys=keys, blocks=blocks, budget_bytes=budget, seed=flags.seed, trie_engine=flags.trie_engine)
    return _told("churn", report, print_churn, flags, ok=not report.harmed, harmed=report.harmed)


@app.command
def callbacks(
    *,
    keys: HeavyKeys = 256,
    callback_us: CallbackTime = 10_000,
    limit_us: CallbackLimit = 500_000,
    blocks: ChurnBlocks = 24,
    flags: Flags = NO_FLAGS,
) -> ExitCode:
    """Change every key in every block; print the time of a reader's callbacks and the delay of other values.

    Without a limit the callbacks take longer than a block may, and the exit code is 1. With a limit every block fits,
    and values of others wait too: the report compares them with the same run without the attack.

    Example: relaycast attack callbacks --limit-us 0
    """
    from relaycast.attacks import callbacks as attack  # noqa: PLC0415
    from relaycast.cli.tables.attack import print_callbacks  # noqa: PLC0415

    if 0 < limit_us < callback_us:
        raise BadInput("--limit-us", str(limit_us), f"0, or at least --callback-us = {callback_us}")
    report = attack(
        keys=keys,
        blocks=blocks,
        callback_us=callback_us,
        limit_us=limit_us,
        seed=flags.seed,
        trie_engine=flags.trie_engine,
    )
    return _told("callbacks", report, print_callbacks, flags, ok=report.contained, harmed=report.harmed)


@app.command
def squat(*, every: SquatEvery = 4, blocks: SquatBlocks = 24, flags: Flags = NO_FLAGS) -> ExitCode:
    """Register a parachain of others first, remove what it publishes every few blocks, and print who loses values.

    Four cases: a public parachain's id, the same after its owner has registered, and a system parachain's id under the
    policies "public" and "open". The drafts let anyone register any id, so the first and the last harm others and the
    exit code is 1.

    Example: relaycast attack squat --every 8
    """
    from relaycast.attacks import squat as attack  # noqa: PLC0415
    from relaycast.cli.tables.attack import print_squat  # noqa: PLC0415

    report = attack(every=every, blocks=blocks, seed=flags.seed, trie_engine=flags.trie_engine)
    return _told("squat", report, print_squat, flags, ok=not report.harmed, harmed=[row.harmed for row in report.rows])


@app.command
def omit(*, blocks: AttackBlocks = 12, samples: Samples = 10, flags: Flags = NO_FLAGS) -> ExitCode:
    """Let collators leave out nodes and messages that they should hand over, and print what caught each lie.

    Omissions within the last min_weight of a budget cannot be told from an honest end. Hashes may stand for messages
    that would fit as long as one is in full. Any other lie that goes undetected makes the exit code 1.

    Example: relaycast attack omit --samples 0
    """
    return _lies("omit", blocks, samples, flags)


@app.command
def extra(*, blocks: AttackBlocks = 12, samples: Samples = 10, flags: Flags = NO_FLAGS) -> ExitCode:
    """Let collators hand over wrong nodes, and invent, alter and reorder messages, and print what caught each lie.

    A lie that goes undetected makes the exit code 1.

    Example: relaycast attack extra --seed 7
    """
    return _lies("extra", blocks, samples, flags)


@app.command
def price(
    attacks: PricedAttacks = None,
    /,
    *,
    keys: PriceKeys = 64,
    blocks: PriceBlocks = 8,
    budget: ChurnBudget = None,
    flags: Flags = NO_FLAGS,
) -> ExitCode:
    """Run every attack; print its harm, and its cost to the attacker in a day.

    Costs are the deposit, fees of transactions, and fees of messages. As drafted, messages of Publish run free; the
    other figure is for the same publications in messages that pay for their execution. The table says which figures are
    exact, modelled or assumed.

    Example: relaycast attack price churn deep-paths --keys 16
    """
    from relaycast.attacks.price import MEASURED, Terms  # noqa: PLC0415
    from relaycast.attacks.price import price as price_attacks  # noqa: PLC0415
    from relaycast.cli.tables.price import print_prices  # noqa: PLC0415

    chosen = tuple(attacks or ())
    for name in chosen:
        if name not in MEASURED:
            raise BadInput("ATTACK", shown(name), "an attack", nearest(name, list(MEASURED)))
    terms = Terms(keys=keys, blocks=blocks, budget_bytes=budget, seed=flags.seed, trie_engine=flags.trie_engine)
    report = price_attacks(terms, chosen)
    return _told("price", report, print_prices, flags, ok=not report.violations)


def _lies(family: str, blocks: int, samples: int, flags: AttackFlags) -> ExitCode:
    from relaycast import attacks  # noqa: PLC0415
    from relaycast.cli.tables.attack import print_lies  # noqa: PLC0415

    attack = {"omit": attacks.omit, "extra": attacks.extra}[family]
    report = attack(blocks=blocks, samples=samples, seed=flags.seed, trie_engine=flags.trie_engine)
    counts = {"told": report.told, "caught": report.caught, "undetected": report.undetected}
    passed = {"within_min_weight": report.within_min_weight, "put_off": report.put_off}
    return _told(family, report, print_lies, flags, ok=report.ok, **counts, **passed)


def _told(
    family: str, report: Any, print_table: Callable[[Any], None], flags: AttackFlags, *, ok: bool, **derived: object
) -> ExitCode:
    """Print a report, with what is derived from it where it is JSON, and return how the verb ends."""
    from relaycast.cli.tables.attack import print_json  # noqa: PLC0415

    if flags.json:
        print_json(family, report, ok=ok, **derived)
    else:
        print_table(report)
    if report.violations:
        return ExitCode.INVARIANT_VIOLATED
    return ExitCode.FINE if ok else ExitCode.CHECK_FAILED
