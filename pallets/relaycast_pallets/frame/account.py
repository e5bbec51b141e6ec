"""What frame-system keeps of an account: its nonce, who needs it and who keeps it, and its funds.

An account is kept while it has a provider: its existential deposit. A consumer, such as a hold, needs the account to
stay. Both are counted. The balances pallet writes ``data`` and leaves the rest alone.
"""

from msgspec import Struct

from relaycast_pallets.frame.typed_storage import StorageCodec
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_u32, encode_u128
from relaycast_xcm.primitives import Balance, u32, u128

IS_NEW_LOGIC = 1 << 127
"""The flag that pallet-balances sets on every account it writes (``ExtraFlags``)."""


class AccountData(Struct, frozen=True):
    """An account's ``free`` funds, the ``reserved`` sum of its holds, and how much of both is ``frozen``."""

    free: Balance = 0
    reserved: Balance = 0
    frozen: Balance = 0
    flags: u128 = IS_NEW_LOGIC

    @property
    def total(self) -> int:
        return self.free + self.reserved


class AccountInfo(Struct, frozen=True):
    """SCALE ``AccountInfo``: four u32, then the four u128 of ``data``."""

    nonce: u32 = 0
    """Transactions that the account has sent."""

    consumers: u32 = 0
    providers: u32 = 0
    sufficients: u32 = 0
    data: AccountData = AccountData()

    @property
    def can_lose_a_provider(self) -> bool:
        """Whether nothing needs the provider that the account has (``can_dec_provider``)."""
        return not self.consumers or self.providers > 1

    @property
    def is_kept(self) -> bool:
        return bool(self.providers or self.sufficients)

    def encode(self) -> bytes:
        references = (self.nonce, self.consumers, self.providers, self.sufficients)
        data = self.data
        amounts = (data.free, data.reserved, data.frozen, data.flags)
        return b"".join(map(encode_u32, references)) + b"".join(map(encode_u128, amounts))

    @classmethod
    def decode(cls, data: bytes) -> "AccountInfo":
        if len(data) != 80:
            raise CodecError(f"an AccountInfo has 80 bytes, got {len(data)}")
        reader = ScaleReader(data)
        references = reader.u32(), reader.u32(), reader.u32(), reader.u32()
        return cls(*references, AccountData(reader.u128(), reader.u128(), reader.u128(), reader.u128()))


ACCOUNT_INFO = StorageCodec("AccountInfo", AccountInfo.encode, AccountInfo.decode, 80)
