"""``python -m acquatop`` is the command ``acquatop``."""

import sys

from acquatop.app.cli import main

sys.exit(main())
