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
from relaycast_pallets.subscriber.variants.subscription_limits import KeyExcess
from relaycast_xcm.primitives import ParaId


class SubscriberRefusal(DispatchError):
    """A call about ``publisher`` that does not fit the pallet's state."""

    publisher: ParaId


class PublisherRootNotFound(SubscriberRefusal, message="publisher {publisher} has no stored root"):
    """No root of it is stored."""


class PublisherNotDisabled(SubscriberRefusal, message="publisher {publisher} is not disabled"):
    """It is not disabled."""


class NoCachedNodes(SubscriberRefusal, message="nothing is kept of publisher {publisher}"):
    """Nothing of it is kept."""


class SubscriptionsFull(
    SubscriberRefusal, message="the limit of publishers is reached, no room for publisher {publisher}"
):
    """As many others are followed as may be."""


class SubscriptionsFixed(DispatchError, message="the parachain's own code says what it follows, no call changes it"):
    """The parachain's own code says what it follows."""


class TooManySubscribedKeys(DispatchError, message="subscribed keys: {excess}"):
    """The parachain would subscribe to more keys than ``excess.limit``."""

    excess: KeyExcess
