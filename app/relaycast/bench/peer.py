"""The peer's figures: Rust trie-db 0.32 with blake2b_simd and Substrate's V1 layout, on one core of an AMD Zen 5.

By workload, then by keys of the trie and bytes of a value. A ratio is the peer's time over ours, after ours is brought
to the peer's machine: times what a ``hashlib`` call takes there over what it takes here.
"""

HASHLIB_NS = 311.0

FIGURES: dict[str, dict[tuple[int, int], float]] = {
    "bulk root, ns/key": {
        (1_000, 32): 340, (10_000, 32): 337, (100_000, 32): 346, (1_000_000, 32): 465,
        (1_000, 100): 500, (1_000_000, 100): 735,
    },
    "get, ns": {
        (1_000, 32): 547, (10_000, 32): 726, (100_000, 32): 1_665, (1_000_000, 32): 2_641,
        (1_000, 100): 572, (1_000_000, 100): 3_031,
    },
    "prove k=100, us": {
        (1_000, 32): 90, (10_000, 32): 124, (100_000, 32): 172, (1_000_000, 32): 362,
        (1_000, 100): 106, (1_000_000, 100): 349,
    },
    "prove k=1000, us": {
        (1_000, 32): 844, (10_000, 32): 1_180, (100_000, 32): 2_320, (1_000_000, 32): 4_320,
        (1_000, 100): 1_030, (1_000_000, 100): 4_020,
    },
    "verify k=100, us": {
        (1_000, 32): 121, (10_000, 32): 195, (100_000, 32): 295, (1_000_000, 32): 431,
        (1_000, 100): 163, (1_000_000, 100): 476,
    },
    "verify k=1000, us": {
        (1_000, 32): 866, (10_000, 32): 1_360, (100_000, 32): 2_300, (1_000_000, 32): 4_450,
        (1_000, 100): 1_120, (1_000_000, 100): 5_170,
    },
    "compact encode k=1000, us": {
        (1_000, 32): 650, (10_000, 32): 1_700, (100_000, 32): 3_540, (1_000_000, 32): 6_070,
        (1_000, 100): 950, (1_000_000, 100): 8_110,
    },
    "compact decode k=1000, us": {
        (1_000, 32): 563, (10_000, 32): 1_310, (100_000, 32): 2_530, (1_000_000, 32): 4_450,
        (1_000, 100): 910, (1_000_000, 100): 5_260,
    },
    "update 1 %, ns/changed key": {
        (1_000, 32): 3_800, (10_000, 32): 3_800, (100_000, 32): 6_000, (1_000_000, 32): 9_100,
        (1_000, 100): 3_800, (1_000_000, 100): 8_500,
    },
}  # fmt: skip

FIGURES |= {f"verify k={k} from a set, us": FIGURES[f"verify k={k}, us"] for k in (100, 1_000)}
"""Whether our proof lies in arrays or is a set of Python objects: the peer's is a set."""


def ratio(workload: str, keys: int, value_bytes: int, measured: float, hashlib_ns: float) -> float | None:
    """Return how many times the peer's time ours goes into; ``None`` where the peer was not measured."""
    figure = FIGURES.get(workload, {}).get((keys, value_bytes))
    return None if figure is None else figure / (measured * HASHLIB_NS / hashlib_ns)
