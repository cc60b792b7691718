"""Rules that nearly every environment should have: its silence, and what of it collectors reject. Pure."""

from services.alerts.core.rules import RuleBody
from shared.schemas.received import COLLECTOR, RELEASE


def suggested(customer_id: str) -> list[RuleBody]:
    """The rules, without receivers: people choose these."""
    return [
        RuleBody(
            customer=customer_id,
            name="No beacons",
            metric="beacons",
            direction="below",
            ratio=5.0,
            for_seconds=30,
            severity="critical",
        ),
        *(
            RuleBody(
                customer=customer_id,
                name=f"Rejected beacons of a {dimension}",
                metric="rejected",
                by=dimension,
                ratio=3.0,
                # One player that sends nonsense is no incident.
                threshold=0.01,
                severity="warning",
            )
            for dimension in (RELEASE, COLLECTOR)
        ),
    ]
