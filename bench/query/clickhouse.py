"""ClickHouse (chdb) in an environment of its own: loads the generated files into a MergeTree, and answers SQL line by line.

`python clickhouse.py FOLDER FILES THREADS` reads a statement from each line of its input, and writes ms and rows of each as JSON.
"""

import json
import sys
import time

from chdb import session

#: Ordered as the warehouse's files are.
_LOAD = """
    CREATE TABLE views ENGINE = MergeTree ORDER BY (customer_id, hour) AS
    SELECT * REPLACE (assumeNotNull(customer_id) AS customer_id, assumeNotNull(hour) AS hour)
    FROM file('{files}', Parquet) SETTINGS max_insert_threads = 1, schema_inference_make_columns_nullable = 'auto'
"""


def main(folder: str, files: str, threads: str) -> None:
    """Loads, then answers until its input ends."""
    database = session.Session(folder)
    database.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
    database.query("USE bench")
    if "views" not in str(database.query("SHOW TABLES", "TSV")).split():
        database.query(_LOAD.format(files=files))
    print(json.dumps({"ready": str(database.query("SELECT count() FROM views", "TSV")).strip()}), flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        rows = str(database.query(f"{line.strip()} SETTINGS max_threads = {int(threads)}", "TSV")).splitlines()
        print(json.dumps({"ms": 1_000 * (time.perf_counter() - began), "rows": rows}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
