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
    """Why a message is not executed. Two of them are equal when class and fields are."""

    @property
    def name(self) -> str:
        """The variant of upstream's enum."""
        return type(self).__name__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessMessageError) and type(self) is type(other) and self.args == other.args

    def __hash__(self) -> int:
        return hash((type(self), self.args))

    def __str__(self) -> str:
        return (type(self).__doc__ or "").split("\n", maxsplit=1)[0].rstrip(".")


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

    def __init__(self, refusals: tuple[tuple[str, ProcessMessageError], ...]) -> None:
        super().__init__(refusals)
        self.refusals = refusals

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


class Overweight(ProcessMessageError):
    """The message needs the weight ``required``, more than there is."""

    def __init__(self, required: Weight) -> None:
        super().__init__(required)
        self.required = required

    def __str__(self) -> str:
        return f"the message needs {self.required}"


class UpwardQueueError(RelaycastError):
    """Why a queue of upward messages does not accept one."""


class MoreMessagesThanPermitted(UpwardQueueError):
    """A candidate of ``para`` sends ``sent`` messages where ``permitted`` are allowed."""

    def __init__(self, para: ParaId, sent: int, permitted: int) -> None:
        super().__init__(para, sent, permitted)
        self.para = para
        self.sent = sent
        self.permitted = permitted

    def __str__(self) -> str:
        return f"parachain {self.para} sends {self.sent} upward messages in one block, {self.permitted} are permitted"


class MessageTooLarge(UpwardQueueError):
    """Message ``index`` of a candidate has ``message_bytes`` where ``limit`` are allowed."""

    def __init__(self, para: ParaId, index: int, message_bytes: int, limit: int) -> None:
        super().__init__(para, index, message_bytes, limit)
        self.para = para
        self.index = index
        self.message_bytes = message_bytes
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"upward message {self.index} of parachain {self.para} has {self.message_bytes} bytes, limit {self.limit}"
        )


class CapacityExceeded(UpwardQueueError):
    """The queue of ``para`` would hold ``count`` messages where ``limit`` are allowed."""

    def __init__(self, para: ParaId, count: int, limit: int) -> None:
        super().__init__(para, count, limit)
        self.para = para
        self.count = count
        self.limit = limit

    def __str__(self) -> str:
        return f"the upward queue of parachain {self.para} would hold {self.count} messages, limit {self.limit}"


class TotalSizeExceeded(UpwardQueueError):
    """The queue of ``para`` would hold ``total_bytes`` where ``limit`` are allowed."""

    def __init__(self, para: ParaId, total_bytes: int, limit: int) -> None:
        super().__init__(para, total_bytes, limit)
        self.para = para
        self.total_bytes = total_bytes
        self.limit = limit

    def __str__(self) -> str:
        return f"the upward queue of parachain {self.para} would hold {self.total_bytes} bytes, limit {self.limit}"
