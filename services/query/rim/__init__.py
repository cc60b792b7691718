"""Where questions meet the world: Postgres, the warehouse's files, DuckDB."""
