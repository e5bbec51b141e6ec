"""What a call gives, in a form that compares: its result, or the error that it raises."""

from collections.abc import Callable

from relaycast_pallets import StateDiscarded
from relaycast_trie import CodecError, ProofError, VerifiedProof


def result(call: Callable[..., object], *arguments: object, **options: object) -> object:
    """Return what a call returns, or the error that it raises, in a form that compares."""
    try:
        return call(*arguments, **options)
    except (CodecError, ProofError, StateDiscarded) as error:
        return type(error), error.args


def refuses(call: Callable[..., object], *arguments: object) -> bool:
    """Return whether a call says that its arguments are none."""
    try:
        call(*arguments)
    except ValueError:
        return True
    return False


def outcome(verified: object) -> object:
    """Return the values of a proof that holds, and an error in a form that compares."""
    if isinstance(verified, VerifiedProof):
        return dict(verified.values)
    return (type(verified), verified.args) if isinstance(verified, ProofError) else verified
