"""What a reprocess costs beside the same fold as SQL windows, which must come to the same rows."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from bench.finalizer import inputs, sql_fold
from bench.finalizer.timing import ROUNDS, seconds, tell
from services.finalizer import tables
from services.finalizer.jobs import reprocess, warehouse
from services.finalizer.transforms.views import latest_per_view, parse


def run(spark: SparkSession, place: str, beacons: int) -> None:
    """Both folds over the same beacons, turn by turn; raises `AssertionError` where their rows differ."""
    inputs.fill_bronze(spark, place, beacons // inputs.BEACONS_A_VIEW)
    bronze = warehouse.read(spark, place, tables.BRONZE).where(f"day = {inputs.BRONZE_DAY}")
    shuffled = bronze.repartition("kafka_partition").sortWithinPartitions("kafka_partition", "kafka_offset")

    def core() -> DataFrame:
        return latest_per_view(parse(reprocess.folded(bronze, {}))).select(*sql_fold.COLUMNS)

    rows, of_core = sql_fold.hashed(core())
    assert (rows, of_core) == sql_fold.hashed(sql_fold.fold(bronze)), "the two folds differ"
    assert rows == beacons // inputs.BEACONS_A_VIEW
    print(f"both folds come to the same {rows:,} rows (hash {of_core % 2**64:016x})")
    alone, by_core, by_sql = [], [], []
    for _ in range(ROUNDS):
        alone.append(seconds(lambda: _run(shuffled)))
        by_core.append(seconds(lambda: _run(core())))
        by_sql.append(seconds(lambda: _run(sql_fold.fold(bronze))))
    tell(f"{beacons:,} beacons read, shuffled, sorted", alone, beacons, "beacons")
    tell("the same, folded by the processor's core, as views", by_core, beacons, "beacons")
    tell("folded by SQL windows", by_sql, beacons, "beacons")


def _run(frame: DataFrame) -> None:
    frame.select(sf.struct("*")).write.format("noop").mode("overwrite").save()
