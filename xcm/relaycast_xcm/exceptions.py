"""What can be wrong with a message before it runs: bytes, barriers and queues; ``xcm_error`` has what goes wrong later.

::

    RelaycastError
    ├── CodecError
    │   ├── UnsupportedVersion     a VersionedXcm of another version than V5
    │   ├── UnknownVariant         an enum index that V5 does not have
    │   ├── UnsupportedVariant     an enum variant that V5 has and this package has not
    │   ├── TooManyInstructions    more than MAX_INSTRUCTIONS_TO_DECODE, nested ones counted
    │   ├── TooDeep                containers nested deeper than MAX_XCM_DECODE_DEPTH
    │   └── BoundExceeded          a bounded sequence with more items than its bound
    ├── ProcessMessageError        why a message is not executed (frame-support ``ProcessMessageError``)
    │   ├── BadFormat  Corrupt  StackLimitReached  Yield
    │   ├── Unsupported
    │   │   └── NoBarrierAllows    the refusals of a whole chain of barriers
    │   └── Overweight
    └── UpwardQueueError           why a queue does not accept a message (runtime-parachains ``AcceptanceCheckErr``)
        ├── MoreMessagesThanPermitted  MessageTooLarge
        └── CapacityExceeded  TotalSizeExceeded
"""

from relaycast_trie.exceptions import CodecError, RelaycastError
from relaycast_xcm.primitives import ParaId, Weight


class UnsupportedVersion(CodecError):
    """A versioned value of ``version``, which is not V5."""

    def __init__(self, version: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, version, offset)
        self.version = version
        self.offset = offset
        self.reason = f"version {version} is not supported, only 5"


class UnknownVariant(CodecError):
    """``type_name`` has no variant with this ``index`` in V5."""

    def __init__(self, type_name: str, index: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, type_name, index, offset)
        self.type_name = type_name
        self.index = index
        self.offset = offset
        self.reason = f"{type_name} has no variant {index}"


class UnsupportedVariant(CodecError):
    """``variant`` is a variant of ``type_name`` in V5 that this package does not read."""

    def __init__(self, type_name: str, variant: str, index: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, type_name, variant, index, offset)
        self.type_name = type_name
        self.variant = variant
        self.index = index
        self.offset = offset
        self.reason = f"{type_name} {variant} ({index}) is not supported"


class TooManyInstructions(CodecError):
    """A message that reaches ``count`` instructions, nested ones counted; ``limit`` are decoded."""

    def __init__(self, count: int, limit: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, count, limit, offset)
        self.count = count
        self.limit = limit
        self.offset = offset
        self.reason = f"{count} instructions, at most {limit} are decoded"


class TooDeep(CodecError):
    """Containers nested deeper than ``limit``."""

    def __init__(self, limit: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, limit, offset)
        self.limit = limit
        self.offset = offset
        self.reason = f"nested deeper than {limit} levels"


class BoundExceeded(CodecError):
    """A sequence of ``count`` items where ``limit`` are allowed."""

    def __init__(self, type_name: str, count: int, limit: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, type_name, count, limit, offset)
        self.type_name = type_name
        self.count = count
        self.limit = limit
        self.offset = offset
        self.reason = f"{type_name} of {count}, at most {limit} allowed"


class ProcessMessageError(RelaycastError):
    """Why a message is not executed."""

    @property
    def name(self) -> str:
        """The variant of upstream's enum."""
        return type(self).__name__


class BadFormat(ProcessMessageError):
    """The message is not of the form that the barrier asks for."""


class Corrupt(ProcessMessageError):
    """The bytes do not decode."""


class StackLimitReached(ProcessMessageError):
    """The message has more instructions than are allowed."""


class Yield(ProcessMessageError):
    """The message is to be tried again later."""


class Unsupported(ProcessMessageError):
    """The origin or the message is not supported."""


class NoBarrierAllows(Unsupported):
    """No barrier allows the message; ``refusals`` names each barrier with what it answered, in order."""

    refusals: tuple[tuple[str, ProcessMessageError], ...]

    @property
    def name(self) -> str:
        """A chain answers ``Unsupported``, whatever its barriers answered."""
        return "Unsupported"

    def __str__(self) -> str:
        return f"no barrier allows it: {self._answers()}"

    def _answers(self) -> str:
        return ", ".join(
            f"{barrier} ({error._answers()})" if isinstance(error, NoBarrierAllows) else f"{barrier} says {error.name}"
            for barrier, error in self.refusals
        )


class Overweight(ProcessMessageError, message="the message needs {required}"):
    """The message needs the weight ``required``, more than there is."""

    required: Weight


class UpwardQueueError(RelaycastError):
    """Why a queue of upward messages does not accept one."""


class MoreMessagesThanPermitted(
    UpwardQueueError, message="parachain {para} sends {sent} upward messages in one block, {permitted} are permitted"
):
    """A candidate of ``para`` sends ``sent`` messages where ``permitted`` are allowed."""

    para: ParaId
    sent: int
    permitted: int


class MessageTooLarge(
    UpwardQueueError, message="upward message {index} of parachain {para} has {message_bytes} bytes, limit {limit}"
):
    """Message ``index`` of a candidate has ``message_bytes`` where ``limit`` are allowed."""

    para: ParaId
    index: int
    message_bytes: int
    limit: int


class CapacityExceeded(
    UpwardQueueError, message="the upward queue of parachain {para} would hold {count} messages, limit {limit}"
):
    """The queue of ``para`` would hold ``count`` messages where ``limit`` are allowed."""

    para: ParaId
    count: int
    limit: int


class TotalSizeExceeded(
    UpwardQueueError, message="the upward queue of parachain {para} would hold {total_bytes} bytes, limit {limit}"
):
    """The queue of ``para`` would hold ``total_bytes`` where ``limit`` are allowed."""

    para: ParaId
    total_bytes: int
    limit: int
