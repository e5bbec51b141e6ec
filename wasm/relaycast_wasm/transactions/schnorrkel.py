"""Signatures with sr25519 (schnorrkel) whose random number follows from key and message, as ed25519 has it.

The library draws that number anew for every signature, so that the block which carries one has another hash each time.
Here equal payloads have equal signatures; anybody verifies them as usual. For keys of development chains: the
arithmetic takes a time that depends on the secret.

Sources: schnorrkel (``sign``), merlin (transcripts), STROBE 1.0.2, RFC 9496 (encoding of ristretto255).
"""

from hashlib import blake2b

from nacl.bindings import crypto_scalarmult_ed25519_base_noclamp

CONTEXT = b"substrate"

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_MINUS_ONE = pow(2, (P - 1) // 4, P)

RATE = 166
"""Bytes of STROBE-128 between two permutations."""

I, A, C, M = 1, 2, 4, 16  # noqa: E741 - the names of STROBE's flags
MARK_V1 = 128
"""Set in the last byte of a signature: made by schnorrkel, not by ed25519."""

ROTATIONS = (
    (0, 36, 3, 41, 18),
    (1, 44, 10, 45, 2),
    (62, 6, 43, 15, 61),
    (28, 55, 25, 21, 56),
    (27, 20, 39, 8, 14),
)
U64 = 0xFFFF_FFFF_FFFF_FFFF


def sign(public: bytes, secret: bytes, payload: bytes) -> bytes:
    """Return the 64 bytes of a signature; ``secret`` are the scalar and the nonce of 32 bytes each."""
    scalar = int.from_bytes(secret[:32], "little")
    drawn = (
        int.from_bytes(blake2b(secret[32:] + public + payload, person=b"relaycast sr2551").digest(), "little") % ORDER
    )
    point = ristretto(crypto_scalarmult_ed25519_base_noclamp(drawn.to_bytes(32, "little")))
    transcript = Transcript(b"SigningContext")
    for label, message in (
        (b"", CONTEXT),
        (b"sign-bytes", payload),
        (b"proto-name", b"Schnorr-sig"),
        (b"sign:pk", public),
        (b"sign:R", point),
    ):
        transcript.append(label, message)
    challenge = int.from_bytes(transcript.challenge(b"sign:c", 64), "little")
    answer = bytearray(((challenge * scalar + drawn) % ORDER).to_bytes(32, "little"))
    answer[31] |= MARK_V1
    return point + bytes(answer)


def ristretto(edwards: bytes) -> bytes:
    """Return the ristretto255 encoding of a point that is given as ed25519 encodes it."""
    y = int.from_bytes(edwards, "little") & ((1 << 255) - 1)
    x = _root_of_ratio((y * y - 1) % P, (D * y * y + 1) % P)
    if x & 1 != edwards[31] >> 7:
        x = P - x
    first, second = (1 + y) * (1 - y) % P, x * y % P
    inverse = _root_of_ratio(1, first * second * second % P)
    one, two = inverse * first % P, inverse * second % P
    z = one * two * second % P
    if second * z % P & 1:
        x, y = y * SQRT_MINUS_ONE % P, x * SQRT_MINUS_ONE % P
        two = one * _root_of_ratio(1, (-1 - D) % P) % P
    if x * z % P & 1:
        y = P - y
    found = two * (1 - y) % P
    return (P - found if found & 1 else found).to_bytes(32, "little")


def _root_of_ratio(u: int, v: int) -> int:
    """Return the even square root of u/v, or of i times u/v where u/v is no square."""
    root = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * root * root % P
    if check in (-u % P, -u * SQRT_MINUS_ONE % P):
        root = root * SQRT_MINUS_ONE % P
    return P - root if root & 1 else root


class Transcript:
    """A merlin transcript: messages with labels go in, challenges come out."""

    def __init__(self, label: bytes) -> None:
        self._state = bytearray(b"\x01" + bytes([RATE + 2]) + b"\x01\x00\x01\x60" + b"STROBEv1.0.2").ljust(200, b"\x00")
        self._position = self._begin = 0
        keccak(self._state)
        self._operate(M | A, b"Merlin v1.0")
        self.append(b"dom-sep", label)

    def append(self, label: bytes, message: bytes) -> None:
        """Take a message in."""
        self._operate(M | A, label + len(message).to_bytes(4, "little"))
        self._operate(A, message)

    def challenge(self, label: bytes, size: int) -> bytes:
        """Return ``size`` bytes that follow from all that went in."""
        self._operate(M | A, label + size.to_bytes(4, "little"))
        self._operate(I | A | C, b"")
        drawn = bytearray()
        for _ in range(size):
            drawn.append(self._state[self._position])
            self._state[self._position] = 0
            self._move_on()
        return bytes(drawn)

    def _operate(self, flags: int, data: bytes) -> None:
        before, self._begin = self._begin, self._position + 1
        self._absorb(bytes([before, flags]))
        if flags & C and self._position:
            self._permute()
        self._absorb(data)

    def _absorb(self, data: bytes) -> None:
        for byte in data:
            self._state[self._position] ^= byte
            self._move_on()

    def _move_on(self) -> None:
        self._position += 1
        if self._position == RATE:
            self._permute()

    def _permute(self) -> None:
        self._state[self._position] ^= self._begin
        self._state[self._position + 1] ^= 0x04
        self._state[RATE + 1] ^= 0x80
        keccak(self._state)
        self._position = self._begin = 0


def keccak(state: bytearray) -> None:
    """Permute 200 bytes in place (keccak-f[1600])."""
    lanes = [[int.from_bytes(state[8 * (x + 5 * y) :][:8], "little") for y in range(5)] for x in range(5)]
    feedback = 1
    for _ in range(24):
        sums = [lanes[x][0] ^ lanes[x][1] ^ lanes[x][2] ^ lanes[x][3] ^ lanes[x][4] for x in range(5)]
        mixed = [sums[(x + 4) % 5] ^ _rotated(sums[(x + 1) % 5], 1) for x in range(5)]
        moved = [[0] * 5 for _ in range(5)]
        for x in range(5):
            for y in range(5):
                moved[y][(2 * x + 3 * y) % 5] = _rotated(lanes[x][y] ^ mixed[x], ROTATIONS[x][y])
        lanes = [
            [moved[x][y] ^ (~moved[(x + 1) % 5][y] & U64 & moved[(x + 2) % 5][y]) for y in range(5)] for x in range(5)
        ]
        for bit in range(7):
            feedback = (feedback << 1) ^ (0x171 if feedback >> 7 else 0)
            if feedback & 2:
                lanes[0][0] ^= 1 << ((1 << bit) - 1)
    for x in range(5):
        for y in range(5):
            state[8 * (x + 5 * y) : 8 * (x + 5 * y) + 8] = lanes[x][y].to_bytes(8, "little")


def _rotated(lane: int, by: int) -> int:
    return (lane << by | lane >> (64 - by)) & U64
