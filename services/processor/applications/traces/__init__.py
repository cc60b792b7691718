"""traces: the spans of one trace, joined from many services in any order."""
