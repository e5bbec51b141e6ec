"""Why the manager did not do what it was asked for.

```
OperationRefused
├── NoSuchSubscription      no subscription has this id
├── NotYourSubscription     it is somebody else's
├── SubscriptionChanged     it is not the one that If-Match names
└── TooManySubscriptions    the limit is reached
```
A wrong member of a subscription object is an ``InvalidMember``.
"""


class OperationRefused(Exception):
    """Nothing was changed."""


class NoSuchSubscription(OperationRefused):
    """No subscription has this id."""

    def __init__(self, subscription_id: str) -> None:
        super().__init__(subscription_id)
        self.subscription_id = subscription_id

    def __str__(self) -> str:
        return f"there is no subscription {self.subscription_id[:64]!a}"


class NotYourSubscription(NoSuchSubscription):
    """The subscription is somebody else's."""

    def __str__(self) -> str:
        return f"subscription {self.subscription_id} belongs to somebody else"


class SubscriptionChanged(OperationRefused):
    """The subscription has another entity tag than the client has seen."""

    def __init__(self, subscription_id: str, etag: str) -> None:
        super().__init__(subscription_id, etag)
        self.subscription_id = subscription_id
        self.etag = etag

    def __str__(self) -> str:
        return f"subscription {self.subscription_id} has the entity tag {self.etag} by now"


class TooManySubscriptions(OperationRefused):
    """The limit of subscriptions is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most

    def __str__(self) -> str:
        return f"there are {self.most:,} subscriptions, which is the limit; delete one first"
