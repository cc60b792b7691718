"""All operations of accounts in one list: their routes, and their part of the OpenAPI document."""

from typing import Final

from services.accounts.http.access import Routing
from services.accounts.http.requests import Place
from services.accounts.http.v1.audit import AuditOperations
from services.accounts.http.v1.choices.custom_dimensions import CustomDimensionOperations
from services.accounts.http.v1.choices.saved_views import SavedViewOperations
from services.accounts.http.v1.choices.thresholds import ThresholdOperations
from services.accounts.http.v1.deletions import DeletionOperations
from services.accounts.http.v1.keys import KeyOperations
from services.accounts.http.v1.operations import Operation, add
from services.accounts.http.v1.people import PeopleOperations
from services.accounts.http.v1.profile import ProfileOperations
from services.accounts.http.v1.retention import RetentionOperations
from services.accounts.http.v1.tenants import TenantOperations
from services.accounts.http.v1.tokens import TokenOperations
from services.accounts.keys import WriteKeys
from services.accounts.management import Management
from services.accounts.profile import Profile
from services.accounts.service import Accounts
from services.rim.database.pool import Postgres
from services.rim.http import openapi


class AccountsApi:
    """`/v1` of people, tokens, keys, audit, deletions, saved views, thresholds and titles of custom dimensions.

    `page_url` is where browsers reach the page, `customers` the customers' database."""

    def __init__(self, accounts: Accounts, place: Place, page_url: str, customers: Postgres) -> None:
        management = Management(accounts)
        self._place, self._turns = place, accounts.turns
        self.operations: Final[list[Operation]] = [
            *TenantOperations(management, page_url).operations(),
            *PeopleOperations(management, page_url).operations(),
            *TokenOperations(accounts).operations(),
            *KeyOperations(WriteKeys(accounts, customers)).operations(),
            *AuditOperations(accounts, management).operations(),
            *ProfileOperations(Profile(accounts)).operations(),
            *DeletionOperations(accounts).operations(),
            *RetentionOperations(accounts).operations(),
            *SavedViewOperations(accounts).operations(),
            *ThresholdOperations(accounts).operations(),
            *CustomDimensionOperations(accounts).operations(),
        ]

    def add_to(self, routing: Routing) -> None:
        """Adds the routes."""
        for operation in self.operations:
            add(operation, routing, self._place, self._turns)

    @property
    def described(self) -> list[openapi.Operation]:
        """For the document of the whole API."""
        return [operation.described for operation in self.operations]
