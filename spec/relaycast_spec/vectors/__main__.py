"""The program ``python -m relaycast_spec.vectors``."""

import sys

from relaycast_spec.vectors import main

if __name__ == "__main__":
    sys.exit(main())
