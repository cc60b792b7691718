-- What each service's user may do in Postgres: docs/security.md explains it, and a test holds the two together.

ALTER DATABASE playhead OWNER TO finalizer;
GRANT USAGE ON SCHEMA serving TO dashboard;
GRANT SELECT ON ALL TABLES IN SCHEMA serving TO dashboard;
GRANT USAGE ON SCHEMA serving, finalizer TO serving;
GRANT SELECT ON ALL TABLES IN SCHEMA serving TO serving;
GRANT INSERT, UPDATE, DELETE ON serving.views, serving.sums, serving.histograms TO serving;
GRANT INSERT, UPDATE, DELETE ON serving.hot_slices, serving.positions, serving.coverage TO serving;
GRANT INSERT, UPDATE, DELETE ON serving.live_minutes, serving.live_steps, serving.live_positions TO serving;
GRANT SELECT ON finalizer.fence, finalizer.swapped TO serving;
GRANT SELECT, INSERT, UPDATE ON finalizer.dirty_slices TO serving;
GRANT USAGE ON SCHEMA serving, finalizer TO query;
GRANT SELECT ON ALL TABLES IN SCHEMA serving TO query;
GRANT SELECT ON finalizer.dirty_slices TO query;

GRANT USAGE ON SCHEMA collector TO collector;
GRANT SELECT ON ALL TABLES IN SCHEMA collector TO collector;
GRANT USAGE ON SCHEMA limits TO collector, finalizer, dashboard;
GRANT SELECT ON ALL TABLES IN SCHEMA limits TO collector, finalizer, dashboard;
GRANT INSERT, UPDATE, DELETE ON limits.defaults, limits.collectors, limits.stored, limits.refused TO collector;
GRANT INSERT, UPDATE ON limits.defaults TO finalizer;
GRANT DELETE ON limits.stored, limits.refused TO finalizer;
GRANT USAGE ON SCHEMA collector TO dashboard;
GRANT SELECT, INSERT, UPDATE, DELETE ON collector.keys TO dashboard;
GRANT SELECT (customer_id, keys), INSERT (customer_id) ON collector.customers TO dashboard;

GRANT USAGE ON SCHEMA accounts TO dashboard;
GRANT SELECT ON public.accounts_revision TO dashboard;
GRANT SELECT ON accounts.ownership TO dashboard;
GRANT SELECT, INSERT, UPDATE, DELETE ON accounts.organisations, accounts.customers, accounts.people TO dashboard;
GRANT SELECT, INSERT, UPDATE, DELETE ON accounts.members, accounts.sessions, accounts.links TO dashboard;
GRANT SELECT, INSERT, UPDATE, DELETE ON accounts.tokens, accounts.attempts, accounts.recovery_codes TO dashboard;
GRANT SELECT, INSERT, UPDATE, DELETE ON accounts.external_identities, accounts.external_logins, accounts.known_sites TO dashboard;
GRANT SELECT, INSERT ON accounts.audit TO dashboard;
GRANT USAGE ON SCHEMA accounts TO query;
GRANT SELECT ON accounts.ownership, accounts.organisations, accounts.customers, accounts.people, accounts.members TO query;
GRANT SELECT, UPDATE ON accounts.sessions, accounts.tokens TO query;
GRANT INSERT ON accounts.audit TO query;
GRANT SELECT, INSERT ON accounts.deletions, accounts.deletion_steps TO dashboard;
GRANT SELECT, UPDATE ON accounts.deletions, accounts.deletion_steps TO query, finalizer;
GRANT SELECT, INSERT, UPDATE, DELETE ON accounts.retention, accounts.saved_views, accounts.thresholds, accounts.custom_dimensions TO dashboard;
GRANT SELECT, DELETE ON accounts.saved_views, accounts.thresholds TO query;
GRANT SELECT ON accounts.retention TO finalizer;
GRANT USAGE ON SCHEMA accounts TO finalizer;
GRANT SELECT ON public.accounts_revision TO finalizer;
GRANT SELECT (customer_id, organisation_id) ON accounts.customers TO finalizer;
GRANT SELECT (id, owns_rest) ON accounts.organisations TO finalizer;
GRANT INSERT ON accounts.deletions, accounts.deletion_steps, accounts.audit TO finalizer;

GRANT USAGE ON SCHEMA alerts TO dashboard, notifications;
GRANT SELECT ON public.alerts_revision TO notifications;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA alerts TO dashboard, notifications;
GRANT USAGE ON SCHEMA alerts TO finalizer;
GRANT SELECT, INSERT, UPDATE, DELETE ON alerts.environments, alerts.rules, alerts.rule_versions TO finalizer;
GRANT SELECT, UPDATE, DELETE ON alerts.incidents, alerts.changes, alerts.comments, alerts.deliveries TO finalizer;
GRANT USAGE ON SCHEMA accounts TO notifications;
GRANT SELECT (customer_id, organisation_id) ON accounts.customers TO notifications;
GRANT SELECT (id, owns_rest) ON accounts.organisations TO notifications;

GRANT USAGE ON SCHEMA serving TO grafana;
GRANT SELECT ON serving.rollups, serving.sums, serving.histograms, serving.hot_slices, serving.coverage, serving.live_by_minute TO grafana;
GRANT SELECT (customer_id, hour, deleted, cdn, startup_failed, playback_failed, ebvs, watch_ms, rebuffer_ms) ON serving.views TO grafana;
GRANT SELECT (bitrate_integral, bitrate_time_ms) ON serving.views TO grafana;
