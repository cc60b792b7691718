"""video_views: topics, stores and the fold that makes finished rows and live gauges of beacons."""

from functools import partial

from services.processor.applications.video_views.folding import VideoViews
from services.processor.applications.video_views.keys import session_key
from services.processor.applications.video_views.live import division
from services.processor.applications.video_views.live.gauges import OPEN_VIEWS
from services.processor.applications.video_views.live.rows import COHORTS, LIVE_ROWS
from services.processor.applications.video_views.lookup import view_lookup
from services.processor.applications.video_views.outputs import Outputs
from services.processor.applications.video_views.row.scores import GoodRules
from services.processor.applications.video_views.stores import CLOSED_VIEWS, DIMENSIONS, SESSIONS, VIEWS, Stores
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.application.application import Application, Context, Growth, Processor
from shared import topics


def application(
    rules: FinishRules,
    good: GoodRules | None = None,
    live_dimensions: tuple[str, ...] = (),
    *,
    exports_protobuf: bool = False,
    generation: int = 1,
) -> Application:
    """The application under these rules; the live gauges are sliced by the given fields of the row.

    `generation` is that of its rows: a larger one stands in for every revision of a smaller one.
    With `exports_protobuf` each row also goes to topic `views.protobuf`, in the same transaction.
    """
    good = good or GoodRules()

    def start(context: Context) -> Processor:
        stores = Stores(context, rules, live_dimensions)
        return VideoViews(stores, Outputs(stores, good, generation, exports_protobuf=exports_protobuf))

    exports = (topics.VIEWS_PROTOBUF,) if exports_protobuf else ()

    return Application(
        name="video_views",
        inputs=(topics.BEACONS,),
        outputs=(topics.VIEWS, *exports, topics.LIVE, topics.LATE, topics.REJECTED),
        changelog=topics.VIDEO_VIEWS_CHANGELOG,
        stores=(VIEWS, DIMENSIONS, LIVE_ROWS, CLOSED_VIEWS, SESSIONS, COHORTS),
        start=start,
        is_forgetting=True,
        tallies=(OPEN_VIEWS,),
        lookups=(view_lookup(VIEWS, DIMENSIONS, CLOSED_VIEWS, SESSIONS, good),),
        growth=Growth(lambda _, key: session_key(key), division.SUMS, partial(division.divide, VIEWS)),
    )
