"""Bounds of requests, as the collector's settings give them."""

from dataclasses import dataclass

from services.collector.admission.rates import NO_RATES
from services.collector.intake.sender.customers import Customer


@dataclass(frozen=True)
class BodyLimits:
    """How long bodies may take, and how many of them at a time."""

    seconds_max: float
    #: From the first second on, on average.
    bytes_per_second_min: float
    #: Bodies that take longer than a second, of one address, and of one key.
    slow_by_address_max: int
    slow_by_key_max: int


@dataclass(frozen=True)
class Limits:
    """What bounds a request besides the intake's rules."""

    bodies: BodyLimits
    in_flight_bytes_max: int
    #: Of the bytes in flight, what one address, and one key, may hold.
    party_share_max: float
    #: CPU time that an address may waste.
    wasted_seconds_per_second: float
    #: Of one address, before a key is read.
    address_requests_per_second: float
    #: How long a request may be held back that is beyond its customer's rate.
    throttle_seconds_max: float
    rejected_bytes_per_second_max: float
    #: The rates of listed customers that have none of their own.
    customer_rates: Customer = NO_RATES
