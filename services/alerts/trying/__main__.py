"""One trial: `python -m services.alerts.trying`. Reads what is asked and then rows, a line of JSON each; writes the answer as JSON.

It is a process of its own because it computes for seconds. The process that started it continues meanwhile, and ends it when it
takes too long.
"""

import os
import sys

import msgspec

from services.alerts.core import trial
from services.alerts.core.trial import Asked, MinuteRow

#: The live picture comes first.
_NICE = 10


def main() -> int:
    """0: the answer is on the standard output."""
    os.nice(_NICE)
    asked = msgspec.json.decode(sys.stdin.buffer.readline(), type=Asked)
    rows = msgspec.json.Decoder(MinuteRow)
    answer = trial.run(asked, map(rows.decode, sys.stdin.buffer))
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
