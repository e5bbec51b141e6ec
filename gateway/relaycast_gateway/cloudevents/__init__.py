"""CloudEvents subscriptions: filters, encodings and the manager."""
