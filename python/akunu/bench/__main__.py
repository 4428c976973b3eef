"""`python -m akunu.bench` is the command `akunu-bench`."""

import sys

from akunu.bench import main

if __name__ == "__main__":
    sys.exit(main())
