"""What a runtime says that a call costs."""

from typing import Protocol

from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_xcm import Weight


class DispatchInfo(Protocol):
    """What a call weighs, and in which class; ``partial_fee`` without a tip."""

    @property
    def weight(self) -> Weight: ...
    @property
    def dispatch_class(self) -> str: ...
    @property
    def partial_fee(self) -> int: ...


class InclusionFee(Protocol):
    """The parts of a fee."""

    @property
    def base_fee(self) -> int: ...
    @property
    def len_fee(self) -> int: ...
    @property
    def adjusted_weight_fee(self) -> int: ...


class FeesFace(Protocol):
    """What a runtime charges, as of one block."""

    def dispatch_info(self, call: DecodedCall, length: int, /) -> DispatchInfo: ...
    def inclusion_fee(self, call: DecodedCall, length: int, /) -> InclusionFee: ...
    def weight_to_fee(self, weight: Weight, /) -> int: ...
    def length_to_fee(self, length: int, /) -> int: ...
