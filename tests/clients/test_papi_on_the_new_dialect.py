"""polkadot-api 2.2.2 uses a network whose legacy methods are switched off (run with ``-m clients``).

Two things have no counterpart in the new interface. For read proofs, the script takes the relay proof that
``dev_proof`` shows. In place of the pool's list, it looks at the account's nonce in the best block.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.conversation import Said, listen_to
from clients.new_dialect import OnlyNew
from clients.papi_project import PapiList
from clients.served import Line, Served
from clients.whole_list import PUBLISHER, child_key, decoded

pytestmark = pytest.mark.clients

LEGACY = {"system", "chain", "state", "childstate", "author", "payment"}


@pytest.fixture(scope="module")
def served(folder: Path, data: str) -> Iterator[Served]:
    """Serve the oracle of the presets without the legacy methods."""
    assert folder.is_dir()  # packages are looked for before anything is served
    options = ("--block-time", "500ms", "--dialect", "new", "--data", data)
    with OnlyNew.serving("oracle", *options) as network:
        yield network


@pytest.fixture(scope="module")
def said(compiled: Path, served: Served, line: Line) -> Said:
    return listen_to(["node", "papi.mjs", served.url, line.url, "new"], line, compiled)


class TestPapiOnTheNewDialect(PapiList):
    """The same list, and nothing of it with a legacy method."""

    def test_no_legacy_method_is_there(self, served: Served) -> None:
        names = served.ask("rpc_methods")["methods"]
        assert not [name for name in names if name.split("_")[0] in LEGACY]

    def test_its_child_proof_holds(self, said: Said, tmp_path: Path) -> None:
        """The relay proof holds more than one key: it is taken whole for the way to the child trie, too."""
        super().test_its_child_proof_holds(said, tmp_path)
        seen = said("child proof")
        assert seen["nodes"] == seen["top_nodes"]

    def test_an_independent_decoder_reads_its_child_proof(self, said: Said) -> None:
        seen = said("child proof")
        child_root = decoded(seen["state_root"], seen["nodes"])[child_key(PUBLISHER)]
        assert decoded(child_root, seen["nodes"])[seen["key"]] == seen["value"]
