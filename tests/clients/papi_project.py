"""polkadot-api 2.2.2: its project, its generator's types of a served network, and what its script of the list says."""

from pathlib import Path

from clients.conversation import SCRIPTS, Facts, Said, node_packages, npm_project
from clients.whole_list import WholeList

SOURCES = (
    "papi.mts",
    "papi_readings.mts",
    "steps_papi.mts",
    "steps.mjs",
    "items.mjs",
    "network.mjs",
    "tsconfig.json",
)


def make_project(folder: Path) -> None:
    """Make a project without descriptors; skips where packages are missing."""
    packages = node_packages("polkadot-api")
    npm_project(folder, packages, [SCRIPTS / name for name in SOURCES])
    lower = folder / "node_modules" / "@polkadot-api" / "substrate-client"
    lower.unlink()  # the one that polkadot.js brings is older
    lower.symlink_to(packages / "polkadot-api" / "node_modules" / "@polkadot-api" / "substrate-client")


class PapiList(WholeList):
    """The whole list, and generated types."""

    def test_its_generator_makes_descriptors_of_our_metadata(self, project: Path) -> None:
        made = {file.name for file in (project / ".papi" / "descriptors" / "dist").iterdir()}
        assert {"index.js", "relay.d.ts", "parachain.d.ts"} <= made

    def test_a_program_against_the_descriptors_compiles(self, compiled: Path) -> None:
        assert (compiled / "papi.mjs").is_file()

    def test_it_reads_the_metadata(self, said: Said) -> None:
        assert said("metadata")["version"] in {14, 15}

    def test_it_calls_runtime_apis(self, said: Said) -> None:
        seen = said("runtime apis")
        assert seen["nonce"] == seen["system_nonce"]

    def refused(self, seen: Facts, variant: str, text: str) -> None:
        """PAPI asks for the validity before it sends, and names the variant."""
        assert (seen["kind"], seen["reason"]) == ("Invalid", variant)
