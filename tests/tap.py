# SPDX-License-Identifier: Apache-2.0
"""tap.py - TAP output for the tests that are Python programs. Knows nothing of what is tested."""
import sys


class Tap:
    """Prints one TAP line per check; done() prints the plan and exits."""

    def __init__(self):
        self.count = 0
        self.bad = 0

    def check(self, name, problems):
        """problems: a list of strings, empty when the check holds."""
        self.count += 1
        self.bad += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {self.count} - {name}", flush=True)
        for problem in problems[:40]:
            print(f"# {problem}")
        if len(problems) > 40:
            print(f"# ... and {len(problems) - 40} more")

    def holds(self, name, good, said=""):
        """A condition; the last lines that were seen follow where it is not met."""
        self.check(name, [] if good else str(said).splitlines()[-40:] or ["not so"])

    def must_flag(self, name, problems):
        """A self-test: the sample is bad, so there must be problems."""
        self.check(f"self-test: {name}", [] if problems else ["the bad sample was not flagged"])

    def must_pass(self, name, problems):
        """A self-test: the sample is good, so there must be none."""
        self.check(f"self-test: {name}", problems)

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def done(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.bad else 0)
