-- Topic live by minute, and its steps of 5 s for the last day: services/serving lands it. Documents: shared/schemas/live_minute.py.

-- One row a customer, dimension (or pair, `cdn,country`) and minute since 1970. Dimension '' has the customer's own figures under
-- value ''; dimension 'rejected' has rejected input by reason. Customer '': input without a known customer, and customers without room.
CREATE TABLE serving.live_minutes (
    customer_id text   NOT NULL,
    dimension   text   NOT NULL,
    minute      bigint NOT NULL,
    document    jsonb  NOT NULL,
    PRIMARY KEY (customer_id, dimension, minute)
);
CREATE INDEX live_minutes_by_minute ON serving.live_minutes (minute);
CREATE TABLE serving.live_steps (LIKE serving.live_minutes INCLUDING INDEXES);

-- Where the reader goes on: written in the transaction that brings the minutes.
CREATE TABLE serving.live_positions (
    topic_id    text   NOT NULL, -- a topic that is made again has another
    partition   int    NOT NULL,
    next_offset bigint NOT NULL,
    until_ms    bigint NOT NULL, -- the newest time that was landed, ms since 1970; 0: none
    PRIMARY KEY (topic_id, partition)
);

-- Minutes as columns. `viewers` and the other gauges are means over the steps that were heard of; all else are sums.
CREATE VIEW serving.live_by_minute AS
    SELECT m.customer_id, m.dimension, v.key AS value, to_timestamp(m.minute * 60) AS at,
           coalesce((v.value->>'viewers_now')::numeric / s.steps, 0) AS viewers,
           coalesce((v.value->>'viewers_max')::bigint, 0) AS viewers_max,
           coalesce((v.value->>'rebuffering_now')::numeric / s.steps, 0) AS rebuffering,
           coalesce((v.value->>'bitrate_bps_now')::numeric / nullif((v.value->>'bitrate_viewers_now')::numeric, 0), 0) AS bitrate_bps,
           coalesce((v.value->>'views_started')::bigint, 0) AS views_started,
           coalesce((v.value->>'views_finished')::bigint, 0) AS views_finished,
           coalesce((v.value->>'failures')::bigint, 0) AS failures,
           coalesce((v.value->>'playback_failures')::bigint, 0) AS playback_failures,
           coalesce((v.value->>'startup_failures')::bigint, 0) AS startup_failures,
           coalesce((v.value->>'exits_before_start')::bigint, 0) AS exits_before_start,
           coalesce((v.value->>'startups')::bigint, 0) AS startups,
           coalesce((v.value->>'startup_ms')::bigint, 0) AS startup_ms,
           coalesce((v.value->>'beacons')::bigint, 0) AS beacons,
           coalesce((v.value->>'late')::bigint, 0) AS late,
           coalesce((v.value->>'count')::bigint, 0) AS rejected
    FROM serving.live_minutes AS m,
         LATERAL (SELECT greatest((m.document->>'steps')::bigint, 1) AS steps) AS s,
         LATERAL jsonb_each(m.document->'values') AS v;
