"""The page: its files, and under which headers browsers get them."""
