"""Wrong migrations of the subscriber pallet, each of which a scene of an upgrade notices."""

from typing import Any

import pytest

from pallets import subscriber_world
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.proof_pass import Charges, PaidReads
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_pallets.subscriber.variants import migration
from relaycast_pallets.subscriber.variants.metered_state import uses_of, with_uses
from relaycast_xcm.primitives import ParaId, Weight

PATCH = pytest.MonkeyPatch


def migrate_nothing(patch: PATCH) -> None:
    """Storage stays as the code before left it."""
    patch.setattr(subscriber_world, "migrate", lambda _subscriber, _before: Weight.ZERO)


def trust_uses(patch: PATCH) -> None:
    """Uses are taken over from policies under which they are not kept."""
    patch.setattr(migration, "_kept_by", lambda _policies: ())


def keep_nodes_without_uses(patch: PATCH) -> None:
    """Nodes that are on no path stay among those that are counted."""

    def counted(nodes: dict[bytes, bytes], dealt_with: Any) -> dict[bytes, bytes]:
        uses = uses_of(dealt_with or (), nodes)
        return {node_hash: with_uses(data, uses[node_hash]) for node_hash, data in nodes.items()}

    patch.setattr(migration, "_counted", counted)


def look_at_one_root(patch: PATCH) -> None:
    """Keys that were dealt with against another root than the first key's are overlooked."""
    dealt_with = migration._dealt_with
    patch.setattr(migration, "_dealt_with", lambda *of: (dealt_with(*of) or [])[:1])


def count_no_places(patch: PATCH) -> None:
    """Plain nodes stand at one place each."""
    patch.setattr(migration, "_count_places", lambda *_: None)


def trust_roots(patch: PATCH) -> None:
    """Roots that hide lost updates are taken over."""
    patch.setattr(migration, "_forget_roots", lambda _storage: 0)


def migrate_followed_publishers_alone(patch: PATCH) -> None:
    """Nodes of a publisher that left keep their old form."""
    rewrite = migration._rewrite

    def alone(storage: SubscriberStorage, para_id: ParaId, stored: Any, wanted: Any) -> None:
        if para_id in storage.digests():
            rewrite(storage, para_id, stored, wanted)

    patch.setattr(migration, "_rewrite", alone)


def charge_as_before(patch: PATCH) -> None:
    """The weight of reads is computed once, for the first configuration."""
    paid_reads, known = Subscriber.paid_reads, dict[int, tuple[Subscriber, Charges]]()

    def as_before(self: Subscriber, *given: Any) -> PaidReads:
        reads = paid_reads(self, *given)
        _, reads.charges = known.setdefault(id(self), (self, reads.charges))
        return reads

    patch.setattr(Subscriber, "paid_reads", as_before)
