"""Why the subscriber refuses a call: one class for each reason.

::

    DispatchError
    ├── SubscriberRefusal           each names the publisher
    │   ├── PublisherRootNotFound   no root to forget
    │   ├── PublisherNotDisabled    nothing to enable
    │   ├── NoCachedNodes           nothing to clear
    │   └── SubscriptionsFull       no place for another publisher
    ├── SubscriptionsFixed          the parachain's own code says what it follows
    └── TooManySubscribedKeys       more keys than a limit allows, of one publisher or in all
"""

from relaycast_pallets.frame.system import DispatchError
from relaycast_pallets.subscriber.subscription_limits import KeyExcess
from relaycast_xcm.primitives import ParaId


class SubscriberRefusal(DispatchError):
    """A call about ``publisher`` that does not fit the pallet's state."""

    def __init__(self, publisher: ParaId) -> None:
        super().__init__(publisher)
        self.publisher = publisher

    def __str__(self) -> str:
        return f"publisher {self.publisher}: {(type(self).__doc__ or '').rstrip('.')}"


class PublisherRootNotFound(SubscriberRefusal):
    """No root of it is stored."""


class PublisherNotDisabled(SubscriberRefusal):
    """It is not disabled."""


class NoCachedNodes(SubscriberRefusal):
    """Nothing of it is kept."""


class SubscriptionsFull(SubscriberRefusal):
    """As many others are followed as may be."""


class SubscriptionsFixed(DispatchError):
    """The parachain's own code says what it follows."""

    def __str__(self) -> str:
        return "the parachain's own code says what it follows, no call changes it"


class TooManySubscribedKeys(DispatchError):
    """The parachain would subscribe to more keys than ``excess.limit``."""

    def __init__(self, excess: KeyExcess) -> None:
        super().__init__(excess)
        self.excess = excess

    def __str__(self) -> str:
        return f"subscribed keys: {self.excess}"
