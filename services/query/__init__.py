"""Answers questions about views over HTTP: any metric, breakdown, filter and range, from hot rows, sums and the warehouse."""
