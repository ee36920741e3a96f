"""case.py - what the package's tests share: the package itself, and how a test without what it needs ends.

FLASHGEN_LIBRARY names the library of the build, PYTHONPATH the package's folder; ctest sets both."""
import os
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77


def skip(label, sentence):
    """Ends the test; as a failure where FLASHGEN_REQUIRE names its label."""
    print(sentence, file=sys.stderr)
    sys.exit(1 if label in os.environ.get("FLASHGEN_REQUIRE", "").split(",") else SKIPPED)


try:
    import numpy as np
except ImportError:
    skip("host", "NumPy is missing: package python3-numpy")

import flashgen  # noqa: E402


class Case(unittest.TestCase):
    def says(self, kind, sentence, function, *arguments, **options):
        """The call raises an exception of this very kind, whose text has the sentence in it."""
        with self.assertRaises(Exception) as caught:
            function(*arguments, **options)
        self.assertIs(type(caught.exception), kind, caught.exception)
        self.assertIn(sentence, str(caught.exception))


def main():
    unittest.main(verbosity=2)
