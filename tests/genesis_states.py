"""Genesis states of real chains, and the roots that everybody knows."""

import gzip
import json

from shared_vectors import shared, unhex

GENESIS_ROOTS = {
    "kusama": "b0006203c3a6e6bd2c6a17b1d4ae8ca49a31da0f4579da950b127774b44aef6b",
    "westend": "7e92439a94f79671f9cade9dff96a094519b9001a7432244d46ab644bb6f746f",
}


def genesis(chain: str) -> dict[bytes, bytes]:
    """Return the top trie of a raw chain spec."""
    with gzip.open(shared(f"data/{chain}-genesis.json.gz"), "rt") as spec:
        raw = json.load(spec)["genesis"]["raw"]
    assert not raw.get("childrenDefault")
    return {unhex(key): unhex(value) for key, value in raw["top"].items()}
