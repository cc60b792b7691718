"""The one document of the public API: that of the query service and those of what the dashboard serves, together."""

import pytest
from openapi_spec_validator import validate

from services.dashboard.app import OPERATIONS
from services.query.core.filters import Filter
from services.query.http.app import OPERATIONS as OF_QUERY
from services.rim.http.openapi import document, merged
from tests.unit.dashboard.door import door


@pytest.mark.thorough
def test_the_document_of_both_services_is_openapi_and_names_each_operation_once() -> None:
    own = [*OPERATIONS, *door().routes.described]
    whole = merged(document(OF_QUERY, [Filter]), document(own))

    validate(whole)
    operations = [operation for item in whole["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names)) == len(OF_QUERY) + len(own)
    assert all(operation["tags"] for operation in operations)


def test_two_types_of_one_name_are_one_type() -> None:
    """Else a document of one service would be described by the other's."""
    first, second = document(OF_QUERY, [Filter]), document([*OPERATIONS, *door().routes.described])
    shared = first["components"]["schemas"].keys() & second["components"]["schemas"].keys()
    assert {name: first["components"]["schemas"][name] for name in shared} == {
        name: second["components"]["schemas"][name] for name in shared
    }
