"""Observability for operators: the catalogue of metrics, rules, dashboards."""
