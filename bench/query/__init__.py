"""Questions to the service `query` over a warehouse of millions of views, beside the same questions to ClickHouse."""
