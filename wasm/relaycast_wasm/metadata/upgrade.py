"""An upgrade from one runtime to another: all that changes, by their versions and metadata."""

from dataclasses import dataclass

from relaycast_wasm.metadata.api_names import api_names
from relaycast_wasm.metadata.change import Change
from relaycast_wasm.metadata.difference import api_version_differences, differences, version_differences
from relaycast_wasm.metadata.model import Metadata
from relaycast_wasm.runtime_version import RuntimeVersion

VERSION_CONSTANT = "System.Version"
"""The constant that repeats the runtime's version."""

ENCODED = ("call", "extrinsic", "transaction extension", "pallet")
"""What transactions are made of."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The ``changes``, and ``notes`` on what the versions do not say of them."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...]

    @property
    def breaking(self) -> int:
        """The number of changes that break clients."""
        return sum(it.breaks for it in self.changes)


def upgrade(before: tuple[RuntimeVersion, Metadata], after: tuple[RuntimeVersion, Metadata]) -> Upgrade:
    """Return what an upgrade changes."""
    (old_version, old), (new_version, new) = before, after
    told = [it for it in differences(old, new) if it.name != VERSION_CONSTANT]
    described = {it.name for it in told if it.about == "runtime api"}
    apis = api_version_differences(old_version, new_version, api_names(old, new))
    changes = [
        *version_differences(old_version, new_version),
        *told,
        *(it for it in apis if it.name not in described),
    ]
    notes = []
    sent = sum(it.breaks and it.about in ENCODED for it in told)
    if sent and old_version.transaction_version == new_version.transaction_version:
        stayed = "1 change is" if sent == 1 else f"{sent} changes are"
        notes.append(
            f"transaction_version stays {new_version.transaction_version}, although {stayed} of what "
            "transactions are made of"
        )
    if changes and old_version.spec_version == new_version.spec_version:
        notes.append(f"spec_version stays {new_version.spec_version}: clients keep the metadata that they know")
    return Upgrade(tuple(changes), tuple(notes))
