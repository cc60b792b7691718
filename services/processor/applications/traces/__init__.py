"""traces: joins the spans of one trace, from many services and in any order."""
