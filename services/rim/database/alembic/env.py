"""Alembic runs this module for every command: the revisions of one service, on the connection from `rim.database.migrations`."""

from alembic import context

_given = context.config.attributes
context.configure(
    connection=_given["connection"],
    version_table=_given["version_table"],
    version_table_schema="public",
    on_version_apply=lambda *, step, **_: _given["applied"].extend(step.up_revision_ids),
)
context.run_migrations()
