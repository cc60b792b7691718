"""The cost of a reprocess, compared with the same fold as SQL windows, which must give the same rows."""

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from bench.finalizer import inputs, sql_fold
from bench.finalizer.timing import ROUNDS, best, cost_ratio, expect, head, print_rounds, row, took
from bench.report.results import Compared, Part, against
from services.finalizer.jobs import reprocess
from services.finalizer.settings import FinalizerSettings
from services.finalizer.transforms.views import latest_per_view, parse
from services.finalizer.warehouse import tables, views_table

#: Beacons a CPU-second, with what Spark itself takes.
GOAL: Final = 60_000


def run(spark: SparkSession, settings: FinalizerSettings, beacons: int) -> Part:
    """Both folds over the same beacons, turn by turn. Raises `Wrong` where their rows differ."""
    place = settings.warehouse_dir
    tables.ensure(spark, place, auto_compact=False)
    inputs.fill_bronze(spark, place, beacons // inputs.BEACONS_A_VIEW)
    bronze = views_table.read(spark, place, tables.BRONZE).where(f"day = {inputs.BRONZE_DAY}")
    shuffled = bronze.repartition("kafka_partition").sortWithinPartitions("kafka_partition", "kafka_offset")

    def core() -> DataFrame:
        return latest_per_view(parse(reprocess.folded(bronze, {}))).select(*sql_fold.COLUMNS)

    rows, of_core = sql_fold.hashed(core())
    expect("rows, hash of the two folds", sql_fold.hashed(sql_fold.fold(bronze)), (rows, of_core))
    expect("rows of the folds", rows, beacons // inputs.BEACONS_A_VIEW)
    print(f"both folds come to the same {rows:,} rows (hash {of_core % 2**64:016x})", flush=True)
    alone, by_core, by_sql = [], [], []
    for _ in range(ROUNDS):
        alone.append(took(lambda: _run(shuffled)))
        by_core.append(took(lambda: _run(core())))
        by_sql.append(took(lambda: _run(sql_fold.fold(bronze))))
    measured = (
        ("read, shuffled, sorted", alone),
        ("folded by the processor's core, as views", by_core),
        ("folded by SQL windows", by_sql),
    )
    for what, rounds in measured:
        print_rounds(f"{beacons:,} beacons {what}", rounds, beacons, "beacons")
    is_compiled = _is_compiled(spark)
    build = "compiled" if is_compiled else "interpreted"
    by_core_rate = max(beacons / one.cpu_seconds for one in by_core)
    setting = "PROCESSOR_COMPILED_DIR=.local/compiled " if is_compiled else ""
    return Part(
        name="finalizer-reprocess",
        title="Finalizer: views reprocessed from beacons",
        command=f"{setting}python -m bench.finalizer --only reprocess --beacons {beacons}",
        checked=f"both folds come to the same {rows:,} rows, by their hash",
        compared=[
            Compared(
                f"reprocess, {build} fold, beacons a CPU-second",
                f"{by_core_rate:,.0f}",
                f"≥ {GOAL:,}",
                by_core_rate >= GOAL,
            ),
            against(
                "reprocess to the same fold in SQL windows, beacons a CPU-second", cost_ratio(by_sql, by_core), 1.0
            ),
            against("the same, beacons a second", best(by_sql).seconds / best(by_core).seconds, 1.0),
        ],
        lines=[
            (
                f"{beacons:,} beacons, {inputs.BEACONS_A_VIEW} a view, in {inputs.PARTITIONS} Kafka partitions. The core is"
                f" the whole fold of the processor ({build}), for any player and any order; the SQL knows only what these views"
                " need."
            ),
            "",
            *head("beacons"),
            *(row(what, rounds, beacons) for what, rounds in measured),
        ],
    )


def _run(frame: DataFrame) -> None:
    frame.select(sf.struct("*")).write.format("noop").mode("overwrite").save()


def _is_compiled(spark: SparkSession) -> bool:
    """Whether Spark's Python processes run the compiled fold: this process may have imported the other before it could choose."""

    def chosen(_: int) -> bool:
        from services.finalizer import folding  # noqa: PLC0415 - where the function runs

        return folding.BUILD.is_compiled

    return bool(spark.sparkContext.parallelize([0], 1).map(chosen).first())
