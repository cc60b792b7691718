"""What simulated viewers watch on: the User-Agent that a device's browser sends, and what the collector derives from it. Pure.

`tests/unit/loadtest/test_incident.py` holds both against each other.
"""

from typing import Final

from loadtest.story import Device

#: A browser of a computer: its User-Agent names no device.
COMPUTER: Final = Device(
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    category="desktop",
    name=None,
    os="Linux",
    browser="Chrome",
)
#: Each device with the share of players who watch on it. A collector parses five new User-Agents of one address at once.
DEVICES: Final[tuple[tuple[Device, float], ...]] = (
    (COMPUTER, 0.2),
    (
        Device(
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
            " Version/18.6 Safari/605.1.15",
            category="desktop",
            name="Mac",
            os="Mac OS X",
            browser="Safari",
        ),
        0.2,
    ),
    (
        Device(
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
            " Version/18.6 Mobile/15E148 Safari/604.1",
            category="phone",
            name="iPhone",
            os="iOS",
            browser="Mobile Safari",
        ),
        0.25,
    ),
    (
        Device(
            "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/140.0.0.0 Mobile Safari/537.36",
            category="phone",
            name="Pixel 9",
            os="Android",
            browser="Chrome Mobile",
        ),
        0.2,
    ),
    (
        Device(
            "Mozilla/5.0 (SMART-TV; Linux; Tizen 7.0) AppleWebKit/537.36 (KHTML, like Gecko)"
            " SamsungBrowser/4.0 Chrome/94.0.4606.31 TV Safari/537.36",
            category="tv",
            name="Samsung SMART-TV",
            os="Tizen",
            browser="Samsung Internet",
        ),
        0.15,
    ),
)
