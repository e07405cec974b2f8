"""``python -m acquatop`` is the command ``acquatop``."""

import sys

from acquatop.cli import main

sys.exit(main())
