"""What operators watch: the catalogue of metrics, rules, dashboards."""
