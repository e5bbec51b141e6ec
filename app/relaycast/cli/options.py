"""Options that several verbs share."""

import os
from typing import Annotated, Literal

from cyclopts import Group, Parameter, validators

from relaycast.refusal import BadInput

SCENARIO, OUTPUT, RUNNING, SPARK = (
    Group(name, sort_key=number) for number, name in enumerate(("Scenario", "Output", "How it runs", "Spark"), start=1)
)
"""Where options stand on a help page; those of one verb alone stand before them."""

File = Annotated[str, Parameter(help="a file, or - for standard input")]
Json = Annotated[bool, Parameter(name="--json", group=OUTPUT, help="print JSON, for programs")]
Verbose = Annotated[
    bool, Parameter(name=["--verbose", "-v"], group=OUTPUT, help="print more: what figures are made of")
]
AllowOversize = Annotated[
    bool, Parameter(name="--allow-oversize", group=OUTPUT, help="exit code 0 although blocks do not fit into a PoV")
]
AllowStarved = Annotated[
    bool,
    Parameter(
        name="--allow-starved", group=OUTPUT, help="exit code 0 although readers did not receive what they subscribe to"
    ),
]
Root = Annotated[str, Parameter(name="--root", help="the trie's root, 0x and 64 hex digits")]
Keys = Annotated[list[str], Parameter(name="--key", help="a key, 0x and hex digits; may be given several times")]
Limit = Annotated[int, Parameter(name="--limit", help="rows to print, 0 for all", validator=validators.Number(gte=0))]
ProofFile = Annotated[str, Parameter(help="a file, - for standard input, or the 0x SCALE hex of a proof itself")]
Compact = Annotated[
    bool, Parameter(name="--compact", help="the nodes are a compact proof: hashes that can be computed are left out")
]
AlwaysJson = Annotated[bool, Parameter(name="--json", help="as without it: this verb prints JSON")]
Version = Annotated[
    Literal[0, 1], Parameter(name="--state-version", help="0: values in their nodes; 1: from 33 bytes outside")
]
TrieEngine = Annotated[
    Literal["auto", "plain", "array"],
    Parameter(
        name="--trie-engine",
        group=RUNNING,
        help="engine for tries: plain Python, compiled arrays, or auto, which begins plain and moves to arrays once "
        "that saves more time than it takes. The results are the same, to the byte",
    ),
]
HasherName = Annotated[
    Literal["blake2b-256", "keccak-256", "blake3"],
    Parameter(
        name="--hasher", help="what the trie hashes with: Substrate's Blake2b-256, Ethereum's Keccak-256, or BLAKE3"
    ),
]
Workers = Annotated[
    int | None,
    Parameter(
        name="--workers",
        group=RUNNING,
        help="processes of this machine that work side by side, one for each core unless given",
    ),
]
MOST_WORKERS = 1_024
EngineName = Annotated[
    Literal["auto", "plain", "array"], Parameter(name="--engine", help="plain Python, compiled arrays, or by size")
]


def checked_workers(workers: int | None) -> int:
    """Return how many processes are to work, as many as there are cores unless told; raises ``BadInput``."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= workers <= MOST_WORKERS:
        raise BadInput("--workers", str(workers), f"a number from 1 to {MOST_WORKERS:,}")
    return workers
