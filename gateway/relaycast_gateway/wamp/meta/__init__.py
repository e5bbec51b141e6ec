"""What the router tells of itself: sessions, registrations, subscriptions and the history of these."""
