"""Where a relay chain starts from: raw chain specs and exports of keys and values."""
