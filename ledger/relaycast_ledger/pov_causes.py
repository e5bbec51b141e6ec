"""What the bytes of a whole block are for. Law: the causes add up to ``pov_bytes``."""

from relaycast_ledger.account_records import IN_THE_PROOF
from relaycast_ledger.pov import PovSize
from relaycast_ledger.records import BlockRecord


def pov_by_cause(record: BlockRecord, pov: PovSize) -> dict[str, int]:
    """Return the bytes of a block's PoV by cause, without causes that take none.

    ``pubsub`` stands for the causes of the relay proof where no account is kept; ``rest`` is the header, validation
    data, and the lengths between nodes.
    """
    account = record.account
    causes = {"static": record.static_bytes}
    if account is None:
        causes["pubsub"] = record.proof_bytes - record.static_bytes
    else:
        for cause in IN_THE_PROOF:
            causes[cause] = sum(getattr(it, cause).node_bytes for it in account.publishers)
    causes |= {"own": pov.own_bytes, "messages": pov.message_bytes, "callbacks": pov.callback_bytes}
    causes["rest"] = pov.pov_bytes - sum(causes.values())
    return {cause: size for cause, size in causes.items() if size}
