"""Messages as bytes and as JSON: ``VersionedXcm::V5`` both ways, in one flavour of ``Publish``.

A codec reads at most 100 instructions, nested ones counted, and containers at most eight deep. The public drafts of
RFC-0160 lay ``Publish`` out differently; a flavour says how, and ``DEFAULT_FLAVOUR`` is key, value and ttl.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import encode_compact, encode_u32
from relaycast_xcm.assets import ASSET, ASSET_FILTER, ASSETS, AllCounted, Asset, Wild
from relaycast_xcm.codec import (
    BYTES,
    BYTES_32,
    COMPACT_U64,
    MAX_INSTRUCTIONS_TO_DECODE,
    MAX_XCM_DECODE_DEPTH,
    U32,
    Blob,
    Codec,
    Json,
    ListOf,
    Optional,
    Span,
    Struct,
    Tagged,
    XcmReader,
    read_items,
    wrong,
)
from relaycast_xcm.exceptions import BoundExceeded, UnsupportedVersion
from relaycast_xcm.instructions import (
    INSTRUCTION_NAMES,
    KEY_BYTES,
    MAX_PUBLISH_VALUE_BYTES,
    PUBLISH_INDEX,
    AssetsResponse,
    BuyExecution,
    ClearError,
    ClearOrigin,
    ClearTopic,
    DepositAsset,
    DescendOrigin,
    Instruction,
    NullResponse,
    OriginKind,
    PayFees,
    Publish,
    PublishItem,
    PublishItems,
    QueryResponse,
    RefundSurplus,
    Response,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    Transact,
    TransferAsset,
    Trap,
    UnpaidExecution,
    VersionResponse,
    WithdrawAsset,
    Xcm,
)
from relaycast_xcm.location import INTERIOR, LOCATION, XCM_VERSION, Location
from relaycast_xcm.primitives import Weight

WEIGHT: Codec[Weight] = Struct(Weight, {"ref_time": COMPACT_U64, "proof_size": COMPACT_U64})
_WEIGHT_LIMIT: Codec[Weight | None] = Optional(WEIGHT, labels=("Unlimited", "Limited"), name="WeightLimit")
_ORIGIN_KIND: Tagged[OriginKind] = Tagged("OriginKind", {}, units=OriginKind)
_MAYBE_LOCATION: Codec[Location | None] = Optional(LOCATION)
_RESPONSE: Tagged[Response] = Tagged(
    "Response",
    {
        0: Struct(NullResponse, {}, name="Null"),
        1: Struct(AssetsResponse, {"assets": ASSETS}, name="Assets", transparent=True),
        3: Struct(VersionResponse, {"version": U32}, name="Version", transparent=True),
    },
    known={2: "ExecutionResult", 4: "PalletsInfo", 5: "DispatchResult"},
)


class _PublishCodec(Struct[Publish]):
    """``Publish`` as key, value and ttl: the hot path, read without the machinery unless spans are asked for."""

    def __init__(self, max_value_bytes: int) -> None:
        super().__init__(Publish, {"key": BYTES_32, "value": Blob(max_value_bytes), "ttl": U32})
        self.max_value_bytes = max_value_bytes

    def encode(self, value: Publish) -> bytes:
        size = len(value.value)
        if size > self.max_value_bytes:
            raise ValueError(f"a published value has at most {self.max_value_bytes} bytes, got {size}")
        return value.key + encode_compact(size) + value.value + encode_u32(value.ttl)

    def decode(self, reader: XcmReader) -> Publish:
        if reader.spans is not None:
            return super().decode(reader)
        key = reader.take(KEY_BYTES)
        start = reader.offset
        size = reader.length()
        if size > self.max_value_bytes:
            raise BoundExceeded(self.fields["value"].type_name, size, self.max_value_bytes, start)
        return Publish(key, reader.take(size), reader.u32())


class XcmFlavour(msgspec.Struct, frozen=True):
    """How one draft lays ``Publish`` out: its ``index`` among the instructions and the codec of its fields."""

    name: str
    publish: Struct[Any]
    index: int = PUBLISH_INDEX

    @classmethod
    def entry(cls, *, max_value_bytes: int = MAX_PUBLISH_VALUE_BYTES, index: int = PUBLISH_INDEX) -> "XcmFlavour":
        """``Publish { key: [u8; 32], value: BoundedVec<u8>, ttl: u32 }``: the specification and the newest drafts."""
        return cls("entry", _PublishCodec(max_value_bytes), index)

    @classmethod
    def items(cls, *, max_items: int = 16, max_value_bytes: int = 1_024, index: int = PUBLISH_INDEX) -> "XcmFlavour":
        """``Publish { data: BoundedVec<([u8; 32], BoundedVec<u8>)> }``: polkadot-sdk pull request 10679."""
        item = Struct(PublishItem, {"key": BYTES_32, "value": Blob(max_value_bytes)})
        return cls("items", Struct(PublishItems, {"data": ListOf(item, limit=max_items)}, name="Publish"), index)

    @classmethod
    def pairs(cls, *, max_items: int = 16, index: int = PUBLISH_INDEX) -> "XcmFlavour":
        """``Publish { data: Vec<(Vec<u8>, Vec<u8>)> }``: polkadot-sdk pull request 9994."""
        item = Struct(PublishItem, {"key": BYTES, "value": BYTES})
        return cls("pairs", Struct(PublishItems, {"data": ListOf(item, limit=max_items)}, name="Publish"), index)


class _XcmListCodec(Codec[Xcm]):
    """``Xcm``: a vector of instructions, whose count adds up over nested messages."""

    type_name = "Xcm"

    def __init__(self) -> None:
        self.instruction: Codec[Instruction]

    def encode(self, value: Sequence[Instruction]) -> bytes:
        return encode_compact(len(value)) + b"".join(map(self.instruction.encode, value))

    def decode(self, reader: XcmReader) -> Xcm:
        start = reader.offset
        count = reader.compact()
        reader.count_instructions(count, start)
        reader.mark(start, self.type_name, f"count {count}")
        return read_items(self.instruction, count, reader)

    def to_json(self, value: Xcm) -> Json:
        return [self.instruction.to_json(instruction) for instruction in value]

    def from_json(self, data: Json, path: str) -> Xcm:
        if not isinstance(data, list) or len(data) > MAX_INSTRUCTIONS_TO_DECODE:
            raise wrong(path, f"a list of at most {MAX_INSTRUCTIONS_TO_DECODE} instructions", data)
        return tuple(self.instruction.from_json(item, f"{path}[{at}]") for at, item in enumerate(data))


def _instruction_codec(flavour: XcmFlavour, xcm: Codec[Xcm]) -> Tagged[Instruction]:
    structs: list[Struct[Any]] = [
        Struct(WithdrawAsset, {"assets": ASSETS}, transparent=True),
        Struct(
            QueryResponse,
            {"query_id": COMPACT_U64, "response": _RESPONSE, "max_weight": WEIGHT, "querier": _MAYBE_LOCATION},
        ),
        Struct(TransferAsset, {"assets": ASSETS, "beneficiary": LOCATION}),
        Struct(Transact, {"origin_kind": _ORIGIN_KIND, "fallback_max_weight": Optional(WEIGHT), "call": BYTES}),
        Struct(ClearOrigin, {}),
        Struct(DescendOrigin, {"interior": INTERIOR}, transparent=True),
        Struct(DepositAsset, {"assets": ASSET_FILTER, "beneficiary": LOCATION}),
        Struct(BuyExecution, {"fees": ASSET, "weight_limit": _WEIGHT_LIMIT}),
        Struct(RefundSurplus, {}),
        Struct(SetErrorHandler, {"xcm": xcm}, transparent=True),
        Struct(SetAppendix, {"xcm": xcm}, transparent=True),
        Struct(ClearError, {}),
        Struct(Trap, {"code": COMPACT_U64}, transparent=True),
        Struct(SetTopic, {"topic": BYTES_32}, transparent=True),
        Struct(ClearTopic, {}),
        Struct(UnpaidExecution, {"weight_limit": _WEIGHT_LIMIT, "check_origin": _MAYBE_LOCATION}),
        Struct(PayFees, {"asset": ASSET}),
    ]
    variants = {INSTRUCTION_NAMES.index(struct.type_name): struct for struct in structs} | {
        flavour.index: flavour.publish
    }
    return Tagged("Instruction", variants, known=dict(enumerate(INSTRUCTION_NAMES)))


class XcmCodec:
    """Reads and writes messages of one flavour; ``encode`` and ``decode`` are of ``VersionedXcm``, and only V5."""

    def __init__(self, flavour: XcmFlavour | None = None) -> None:
        self.flavour = flavour or XcmFlavour.entry()
        nested = _XcmListCodec()
        nested.instruction = _instruction_codec(self.flavour, nested)
        self.xcm: Codec[Xcm] = nested

    def encode(self, message: Sequence[Instruction]) -> bytes:
        """Return the bytes of the message behind the version; what no decoder would take is a ``ValueError``."""
        nests = _nesting(message, 1) > 1
        data = XCM_VERSION.to_bytes(1, "little") + self.xcm.encode(tuple(message))
        if nests or len(message) > MAX_INSTRUCTIONS_TO_DECODE:
            self._check_decodes(data)
        return data

    def decode(self, data: bytes) -> Xcm:
        """Return the message; bytes that are left over are refused, as upstream's queues do."""
        reader = XcmReader(data)
        message = self.read(reader)
        reader.done()
        return message

    def read(self, reader: XcmReader) -> Xcm:
        """Read a versioned message from where the reader stands."""
        start = reader.offset
        version = reader.u8()
        if version != XCM_VERSION:
            raise UnsupportedVersion(version, start)
        reader.mark(start, "VersionedXcm", f"V{XCM_VERSION}")
        reader.path.append(f"V{XCM_VERSION}")
        message = self.xcm.decode(reader)
        reader.path.pop()
        return message

    def to_json(self, message: Sequence[Instruction]) -> Json:
        """Return ``{"V5": [...]}`` with the field names of Rust."""
        return {f"V{XCM_VERSION}": self.xcm.to_json(tuple(message))}

    def from_json(self, data: Json) -> Xcm:
        """Return the message of ``{"V5": [...]}`` or of the list alone; ``ValueError`` names the wrong place."""
        if isinstance(data, dict):
            if list(data) != [f"V{XCM_VERSION}"]:
                raise wrong("message", f"a list of instructions, or an object with V{XCM_VERSION}", data)
            data = data[f"V{XCM_VERSION}"]
        return self.xcm.from_json(data, f"V{XCM_VERSION}")

    def _check_decodes(self, data: bytes) -> None:
        try:
            self.decode(data)
        except CodecError as error:
            raise ValueError(f"no receiver decodes the message: {error.reason}") from error


def _nesting(message: Sequence[Instruction], depth: int) -> int:
    """Return how deep messages nest inside ``message``, which stands at ``depth``."""
    if depth > MAX_XCM_DECODE_DEPTH:
        raise ValueError(f"messages nest at most {MAX_XCM_DECODE_DEPTH} deep")
    nested = (item.xcm for item in message if isinstance(item, SetErrorHandler | SetAppendix))
    return max((_nesting(inner, depth + 1) for inner in nested), default=depth)


DEFAULT_FLAVOUR = XcmFlavour.entry()
V5 = XcmCodec(DEFAULT_FLAVOUR)
"""The codec of the specification's flavour."""


def encode_versioned_xcm(message: Sequence[Instruction], *, codec: XcmCodec = V5) -> bytes:
    """Return ``VersionedXcm::V5`` of the message."""
    return codec.encode(message)


def decode_versioned_xcm(data: bytes, *, codec: XcmCodec = V5) -> Xcm:
    """Return the message that ``data`` holds; ``CodecError`` when it holds none."""
    return codec.decode(data)


BYTES_PER_LINE = 16


class Annotation(msgspec.Struct, frozen=True):
    """The ``spans`` of some bytes, in order and without gaps, and their ``message``.

    Where the bytes go wrong there is no message but an ``error``, met at ``error_path``.
    """

    spans: tuple[Span, ...]
    message: Xcm | None
    error: CodecError | None = None
    error_path: str = ""

    def lines(self) -> list[str]:
        """Return one line for each span, long ones broken: offset, bytes, meaning."""
        shown = [line for span in self.spans for line in _lines_of(span)]
        if self.error is not None:
            shown.append(f"{self.error.offset:06x}  {'':<{3 * BYTES_PER_LINE}} {self.error_path}: {self.error}")
        return shown


def annotate(data: bytes, *, codec: XcmCodec = V5) -> Annotation:
    """Return what each byte of a ``VersionedXcm`` means; wrong bytes are told, not raised."""
    spans: list[Span] = []
    reader = XcmReader(data, spans=spans)
    try:
        message = codec.read(reader)
        reader.done()
    except CodecError as error:
        return Annotation(tuple(spans), None, error, reader.here())
    return Annotation(tuple(spans), message)


def _lines_of(span: Span) -> list[str]:
    rows = [span.data[at : at + BYTES_PER_LINE] for at in range(0, len(span.data), BYTES_PER_LINE)]
    texts = [span.meaning] + [""] * (len(rows) - 1)
    offsets = range(span.offset, span.offset + len(span.data), BYTES_PER_LINE)
    return [
        f"{at:06x}  {row.hex(' '):<{3 * BYTES_PER_LINE}} {text}".rstrip()
        for at, row, text in zip(offsets, rows, texts, strict=True)
    ]


PAYMENT_INSTRUCTIONS = 3
"""Instructions that stand before those which are paid for."""

REFUND_INSTRUCTIONS = 2
"""Instructions of the appendix."""

MAX_PAID_INSTRUCTIONS = MAX_INSTRUCTIONS_TO_DECODE - PAYMENT_INSTRUCTIONS - REFUND_INSTRUCTIONS
"""Instructions that one message can pay for: a receiver decodes 100, nested ones counted."""


def paid_message(instructions: Sequence[Instruction], *, fees: int, account: Location) -> Xcm:
    """Return a message that pays up to ``fees`` planck from ``account`` and executes ``instructions``.

    ``ValueError`` for more than ``MAX_PAID_INSTRUCTIONS`` of them.
    """
    if len(instructions) > MAX_PAID_INSTRUCTIONS:
        raise ValueError(f"a message pays for at most {MAX_PAID_INSTRUCTIONS} instructions, got {len(instructions)}")
    payment = Asset.fungible(Location.here(), fees)
    refund = (RefundSurplus(), DepositAsset(Wild(AllCounted(1)), account))
    return (WithdrawAsset((payment,)), BuyExecution(payment, None), SetAppendix(refund), *instructions)
