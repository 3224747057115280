"""Makes the modules of the toy kind importable by its tests, as they are for the services that run it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
