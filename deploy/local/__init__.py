"""The whole of Playhead on one machine: broker, Postgres and services as child processes, for `make demo` and tests."""
