"""Small metadata of every version, written by hand from frame-metadata's structs."""

from relaycast_trie.scale import encode_bytes, encode_compact, encode_option, encode_u8, encode_u32, encode_vec

NONE, NO_DOCS = b"\x00", b"\x00"


def text(value: str) -> bytes:
    return encode_bytes(value.encode())


def docs(*lines: str) -> bytes:
    return encode_vec(map(text, lines))


def named_metadata(version: int) -> bytes:
    """V9 to V13: a pallet ``Empty`` without anything, and ``Bank``."""
    hasher = {9: 4, 10: 5}.get(version, 5)  # Twox64Concat
    entries = [
        text("Total") + b"\x01\x00" + text("Balance<\n  T>") + encode_bytes(b"\x07") + docs("All of it."),
        text("Owed")
        + b"\x00\x01"
        + encode_u8(hasher)
        + text("T::AccountId")
        + text("u32")
        + b"\x01"
        + b"\x00"
        + NO_DOCS,
        text("Loans")
        + b"\x00\x02"
        + encode_u8(hasher)
        + text("u8")
        + text("u16")
        + text("u64")
        + b"\x01\x00"
        + NO_DOCS,
    ]
    if version > 12:
        keys, hashers = encode_vec(map(text, ("u8", "u16", "u32"))), encode_vec([b"\x05", b"\x06", b"\x02"])
        entries.append(text("Many") + b"\x02\x03" + keys + hashers + text("bool") + b"\x00" + NO_DOCS)
    calls = [text("pay") + encode_vec([text("to") + text("T::AccountId"), text("sum") + text("u32")]) + docs("Pay.")]
    events = [text("Paid") + encode_vec([text("AccountId"), text("u32")]) + NO_DOCS]
    bank = (
        text("Bank")
        + encode_option(text("BankPrefix") + encode_vec(entries))
        + encode_option(encode_vec(calls))
        + encode_option(encode_vec(events))
        + encode_vec([text("Fee") + text("u32") + encode_bytes(b"\x05\x00\x00\x00") + NO_DOCS])
        + encode_vec([text("Broke") + docs("No money.")])
    )
    empty = text("Empty") + NONE * 3 + b"\x00" + b"\x00"
    index = version > 11
    modules = encode_vec([empty + (b"\x09" if index else b""), bank + (b"\x2a" if index else b"")])
    extrinsic = encode_u8(4) + encode_vec([text("CheckNonce")]) if version > 10 else b""
    return b"meta" + encode_u8(version) + modules + extrinsic


def field(name: str | None, number: int) -> bytes:
    return encode_option(None if name is None else text(name)) + encode_compact(number) + NONE + NO_DOCS


def case(name: str, index: int, *fields: bytes) -> bytes:
    return text(name) + encode_vec(fields) + encode_u8(index) + NO_DOCS


def portable(number: int, definition: bytes, path: tuple[str, ...] = (), params: tuple[int, ...] = ()) -> bytes:
    named = encode_vec(text("T") + encode_option(encode_compact(it)) for it in params)
    return encode_compact(number) + encode_vec(map(text, path)) + named + definition + NO_DOCS


TYPES = (
    portable(0, b"\x05\x05"),  # u32
    portable(1, b"\x01" + encode_vec([case("pay", 3, field("to", 5), field("sum", 2))]), ("bank", "pallet", "Call")),
    portable(2, b"\x06" + encode_compact(0)),  # Compact<u32>
    portable(3, b"\x01" + encode_vec([case("Paid", 0, field(None, 5))]), ("bank", "pallet", "Event")),
    portable(4, b"\x01" + encode_vec([case("Broke", 7)]), ("bank", "pallet", "Error")),
    portable(5, b"\x00" + encode_vec([field(None, 6)]), ("sp_core", "AccountId32")),
    portable(6, b"\x03" + encode_u32(32) + encode_compact(7)),  # [u8; 32]
    portable(7, b"\x05\x03"),  # u8
    portable(8, b"\x04" + encode_vec([encode_compact(0), encode_compact(9)])),  # (u32, Vec<u8>)
    portable(9, b"\x02" + encode_compact(7)),  # Vec<u8>
    portable(10, b"\x04\x00"),  # ()
    portable(11, b"\x01" + encode_vec([case("Bank", 42, field(None, 1))]), ("runtime", "RuntimeCall")),
    portable(12, b"\x07" + encode_compact(7) + encode_compact(13)),  # BitVec<u8, Lsb0>
    portable(13, b"\x00\x00", ("bitvec", "order", "Lsb0")),
    portable(14, b"\x00" + encode_vec([field("calls", 15)]), ("bank", "Batch"), (11,)),
    portable(15, b"\x02" + encode_compact(11)),  # Vec<RuntimeCall>
)


def portable_metadata(version: int) -> bytes:
    """V14 to V16: one pallet, ``Bank``."""
    later = version > 15
    fine = NONE if later else b""
    old = b"\x02" + text("Use Loans.") + encode_option(text("7")) if later else b""
    one, both = (encode_vec(hashers) for hashers in ([b"\x05"], [b"\x05", b"\x02"]))
    owed_kind = b"\x01" + one + encode_compact(5) + encode_compact(0)
    loans_kind = b"\x01" + both + encode_compact(8) + encode_compact(14)
    entries = [
        text("Owed") + b"\x00" + owed_kind + b"\x00" + NO_DOCS + old,
        text("Loans") + b"\x01" + loans_kind + b"\x04\x00" + docs("Open.") + fine,
        text("Flags") + b"\x00\x00" + encode_compact(12) + b"\x00" + NO_DOCS + fine,
    ]
    none_old = b"\x00" if later else b""
    pay_old = b"\x04\x03\x01" if later else b""
    view = (
        bytes(32) + text("balance") + encode_vec([text("who") + encode_compact(5)]) + encode_compact(0) + NO_DOCS + NONE
    )
    bank = (
        text("Bank")
        + encode_option(text("BankPrefix") + encode_vec(entries))
        + encode_option(encode_compact(1) + pay_old)
        + encode_option(encode_compact(3) + none_old)
        + encode_vec([text("Fee") + encode_compact(0) + encode_bytes(b"\x05\x00\x00\x00") + NO_DOCS + fine])
        + encode_option(encode_compact(4) + none_old)
        + (encode_vec([text("Currency") + encode_compact(0) + docs("u32")]) + encode_vec([view]) if later else b"")
        + encode_u8(42)
        + (docs("A bank.") if version > 14 else b"")
        + fine
    )
    extension = encode_vec([text("CheckNonce") + encode_compact(2) + encode_compact(10)])
    parts = b"".join(map(encode_compact, (5, 11, 9)))
    extrinsic = {
        14: encode_compact(14) + encode_u8(4) + extension + encode_compact(10),
        15: encode_u8(4) + parts + encode_compact(10) + extension + encode_compact(10),
        16: encode_bytes(b"\x04\x05") + parts + encode_vec([b"\x00" + encode_vec([b"\x00"])]) + extension,
    }[version]
    method = text("total") + encode_vec([text("at") + encode_compact(0)]) + encode_compact(0) + NO_DOCS + fine
    api = text("BankApi") + encode_vec([method]) + NO_DOCS + (encode_compact(3) + NONE if later else b"")
    outer = b"".join(map(encode_compact, (11, 3, 4)))
    custom = encode_vec([text("motto") + encode_compact(9) + encode_bytes(b"\x04a")])
    rest = encode_vec([api]) + outer + custom if version > 14 else b""
    return b"meta" + encode_u8(version) + encode_vec(TYPES) + encode_vec([bank]) + extrinsic + rest


def small_metadata(version: int) -> bytes:
    return named_metadata(version) if version < 14 else portable_metadata(version)
