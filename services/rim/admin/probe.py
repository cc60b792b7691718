"""Asks this container's own admin endpoint: `python -m services.rim.admin.probe [livez|readyz]`; exit code 0 for a yes.

The port follows from the service's name in `PLAYHEAD_SERVICE` and its `..._ADMIN_PORT`.
"""

import http.client
import os
import sys
from collections.abc import Mapping
from typing import Final

#: As the services' settings have them by default.
PORTS: Final = {
    "collector": 9101,
    "processor": 9102,
    "finalizer": 9103,
    "dashboard": 9104,
    "webhooks": 9105,
    "serving": 9106,
    "query": 9107,
    "notifications": 9108,
}
_SECONDS_MAX: Final = 4.0


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """The command; prints the reason of a no."""
    service = environ.get("PLAYHEAD_SERVICE", "")
    if service not in PORTS:
        print(f"PLAYHEAD_SERVICE={service!r} must be one of {', '.join(PORTS)}")  # noqa: T201 - its output
        return 2
    port = int(environ.get(f"{service.upper()}_ADMIN_PORT", PORTS[service]))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS_MAX)
    try:
        connection.request("GET", f"/{arguments[0] if arguments else 'livez'}")
        answer = connection.getresponse()
        print(answer.read(1_000).decode(errors="replace").strip())  # noqa: T201
    except OSError as error:
        print(f"no answer on port {port}: {error}")  # noqa: T201
        return 1
    finally:
        connection.close()
    return 0 if answer.status == http.client.OK else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
