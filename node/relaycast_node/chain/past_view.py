"""A chain as transactions would have been judged by after one of its earlier blocks."""

from collections.abc import Callable

from relaycast_node.chain.block_storage import BLOCK_HASH_COUNT
from relaycast_node.chain.code import ReadableState
from relaycast_node.chain.executive import Executive, View
from relaycast_pallets.frame.account import AccountInfo


class PastView(View):
    """Accounts as ``state`` has them; ``hash_of`` gives the hashes of the chain's blocks."""

    def __init__(
        self, executive: Executive, state: ReadableState, number: int, hash_of: Callable[[int], bytes | None]
    ) -> None:
        super().__init__(executive)
        self._state = state
        self._number = number
        self._hash_of = hash_of

    @property
    def block_number(self) -> int:
        return self._number

    def block_hash(self, number: int) -> bytes | None:
        is_known = number == 0 or self._number - BLOCK_HASH_COUNT < number <= self._number
        return self._hash_of(number) if is_known else None

    def nonce(self, account: bytes) -> int:
        return self._info(account).nonce

    def can_pay(self, account: bytes, fee: int) -> bool:
        info = self._info(account)
        deposit = self._executive.payment.balances.existential_deposit
        kept = max(info.data.frozen - info.data.reserved, deposit, 0)
        return info.is_kept and max(info.data.free - kept, 0) >= fee

    def _info(self, account: bytes) -> AccountInfo:
        data = self._state.get(self._executive.system.account.storage_key(account))
        return AccountInfo() if data is None else AccountInfo.decode(data)
