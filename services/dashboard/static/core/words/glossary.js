// @ts-check
// Written by `python -m deploy.glossary` from the table of docs/view.md: do not edit.

export const GLOSSARY = [
  {
    "name": "views",
    "formula": "number of views, without those that were taken back (deleted)",
    "source": "Mux, views",
    "clients": "all",
    "mux": "same",
    "cta": "CTA-2066 counts sessions. CTA-5004-B: sid is a session too, which may hold several views"
  },
  {
    "name": "viewers",
    "formula": "number of distinct viewer_user_id, else viewer_id, that are not null; an id that several customers have counts once",
    "source": "Mux, unique viewers",
    "clients": "mux, EPAS, native, where the page gives an id or mux-embed its cookie",
    "mux": "same",
    "cta": "– (neither has a viewer)"
  },
  {
    "name": "views with a first frame",
    "formula": "number of views that played",
    "source": "Mux, views without exits before start and start-up failures",
    "clients": "all",
    "mux": "same, but any sign of playing counts",
    "cta": "CTA-2066, sessions with playback. CTA-5004-B: sta=p, msd"
  },
  {
    "name": "video start-up time",
    "formula": "median, p95 of startup_ms",
    "source": "Mux, video startup time",
    "clients": "mux: counter; CMCD: msd, else states; native: counter or states; EPAS: states",
    "mux": "same, for mux-embed. The other clients' clocks begin at other moments: start-up time by client",
    "cta": "CTA-2066, video start time: same, from the request to play to the first frame. CTA-5004-B: msd"
  },
  {
    "name": "content start-up time",
    "formula": "median of content_startup_ms",
    "source": "Mux, content startup time",
    "clients": "all",
    "mux": "same; without ads it is startup_ms",
    "cta": "CTA-2066's start time has no pre-roll ads in it, so this figure is the nearer one where ads come first"
  },
  {
    "name": "aggregate start-up time",
    "formula": "median of aggregate_startup_ms",
    "source": "Mux, aggregate startup time",
    "clients": "mux, native",
    "mux": "same",
    "cta": "– (no time of the page's or player's load in either)"
  },
  {
    "name": "player start-up time",
    "formula": "median of player_startup_ms",
    "source": "Mux, player startup time",
    "clients": "mux, native",
    "mux": "same",
    "cta": "–"
  },
  {
    "name": "page load time",
    "formula": "median of page_load_ms",
    "source": "Mux, page load time",
    "clients": "mux, native",
    "mux": "same",
    "cta": "–"
  },
  {
    "name": "exits before video start",
    "formula": "ebvs / V; number: Σ ebvs",
    "source": "Mux, exits before video start",
    "clients": "all",
    "mux": "same, but a view with any sign of playing does not count here",
    "cta": "CTA-2066 counts the viewer's exits only; here a closed tab and a lost connection look the same"
  },
  {
    "name": "video start-up failures",
    "formula": "startup_failed / V; number: Σ startup_failed",
    "source": "Mux, video startup failure",
    "clients": "all",
    "mux": "same, with the same exception as exits",
    "cta": "CTA-2066, video start failure: includes business exceptions, which are left out here"
  },
  {
    "name": "playback failures",
    "formula": "playback_failed / V; number: Σ playback_failed",
    "source": "Mux, playback failure percentage",
    "clients": "all",
    "mux": "same, start-up failures included",
    "cta": "CTA-2066, video playback failure: only those after the start. CTA-5004-B: e with ec; one that nothing follows is fatal here"
  },
  {
    "name": "watch time",
    "formula": "Σ watch_ms",
    "source": "Mux, watch time",
    "clients": "mux: counter; others: states starting, playing, rebuffering, seeking",
    "mux": "same",
    "cta": "– (CTA-2066 knows playing time and rebuffering time apart)"
  },
  {
    "name": "watch time of a view",
    "formula": "median of watch_ms",
    "source": "Mux, watch time, of one view",
    "clients": "as watch time",
    "mux": "Mux shows the sum and the mean",
    "cta": "–"
  },
  {
    "name": "playing time",
    "formula": "Σ playing_ms",
    "source": "Mux, playing time; CTA-2066, playing time",
    "clients": "mux: counter; others: state playing",
    "mux": "same; mux-embed finds a stall 1 s late and counts that second as playing",
    "cta": "same. CTA-5004-B: the time with sta=p"
  },
  {
    "name": "rebuffer percentage",
    "formula": "Σ rebuffer_ms / Σ watch_ms; of one view rebuffer_fraction",
    "source": "Mux, rebuffer percentage",
    "clients": "all",
    "mux": "same: start-up and seeks are in the denominator",
    "cta": "smaller than CTA-2066's ratio by start-up and seeks"
  },
  {
    "name": "rebuffering ratio",
    "formula": "Σ rebuffer_ms / Σ (rebuffer_ms + playing_ms); of one view rebuffer_ratio",
    "source": "CTA-2066, rebuffering ratio: stall / (stall + play)",
    "clients": "all",
    "mux": "larger than Mux's by start-up and seeks. The API has both: rebuffer_ratio beside rebuffer_fraction",
    "cta": "same. CTA-5004-B: bsda, of the session, gives the stalls"
  },
  {
    "name": "rebuffer frequency, per minute",
    "formula": "Σ rebuffer_count / (Σ watch_ms / 60,000)",
    "source": "Mux, rebuffer frequency",
    "clients": "all",
    "mux": "same; Mux's export has it per ms",
    "cta": "CTA-5004-B: bsa, of the session; the figure here is the play's part"
  },
  {
    "name": "rebuffer events",
    "formula": "Σ rebuffer_count",
    "source": "Mux, rebuffer count",
    "clients": "all",
    "mux": "same",
    "cta": "CTA-2066, number of rebuffering events: same. CTA-5004-B: bsa, of the session"
  },
  {
    "name": "rebuffer duration",
    "formula": "median, p95 of rebuffer_ms",
    "source": "Mux, rebuffer duration",
    "clients": "all",
    "mux": "same; stalls of a seek are the seek's in both",
    "cta": "CTA-5004-B: bsd (one stall each), bsda; a player may count stalls of seeks there"
  },
  {
    "name": "seek latency",
    "formula": "Σ seek_ms / Σ seek_count",
    "source": "Mux, seek latency",
    "clients": "all",
    "mux": "same; mux-embed joins seeks within 2 s",
    "cta": "CTA-5004-B: the time with sta=k"
  },
  {
    "name": "seeks",
    "formula": "Σ seek_count",
    "source": "Mux, seek latency (its count)",
    "clients": "all",
    "mux": "same; mux-embed joins seeks within 2 s",
    "cta": "CTA-5004-B: entries into sta=k"
  },
  {
    "name": "weighted average bitrate",
    "formula": "Σ bitrate_integral / Σ bitrate_time_ms",
    "source": "Mux, weighted average bitrate",
    "clients": "all that report a bitrate",
    "mux": "same",
    "cta": "CTA-2066, average playback bitrate: same. CTA-5004-B: br of the object, pb of the playhead"
  },
  {
    "name": "upscale, downscale percentage",
    "formula": "Σ upscale_integral / Σ scale_time_ms, …",
    "source": "Mux, upscale percentage",
    "clients": "mux, native",
    "mux": "same",
    "cta": "– (CTA-5004-B has no sizes of the player)"
  },
  {
    "name": "live latency",
    "formula": "median, p95 of live_latency_ms_avg",
    "source": "Mux, live stream latency; CTA-5004-B, ltc",
    "clients": "mux: server time − program time; CMCD: ltc; native: as given",
    "mux": "same; the mean of a view has the floor 0: a negative mean is an error of a clock",
    "cta": "CTA-5004-B: the mean of ltc, which is one moment's"
  },
  {
    "name": "request latency",
    "formula": "Σ ttfb_sum_ms / Σ (req_count − req_failed − req_canceled)",
    "source": "Mux, request latency",
    "clients": "mux, CMCD, native",
    "mux": "failed and canceled requests count in neither part; below",
    "cta": "CTA-5004-B: ttfb of response reports"
  },
  {
    "name": "request throughput",
    "formula": "8,000 · Σ req_bytes / Σ req_time_ms, bps",
    "source": "Mux, request throughput",
    "clients": "mux, native",
    "mux": "same",
    "cta": "CTA-5004-B has no bytes; its mtp is the client's estimate and is not used"
  },
  {
    "name": "dropped frames",
    "formula": "Σ dropped_frames",
    "source": "Mux; CTA-5004-B, dfa",
    "clients": "mux, CMCD, native",
    "mux": "same",
    "cta": "CTA-5004-B: dfa is of the session, the figure here of the play"
  },
  {
    "name": "dropped frame frequency, per minute",
    "formula": "Σ dropped_frames / (Σ playing_ms / 60,000), of views whose dropped frames are known",
    "source": "own: of two groups the one that plays longer drops more",
    "clients": "mux, CMCD, native",
    "mux": "– (Mux has the count)",
    "cta": "CTA-5004-B: dfa, of the session"
  },
  {
    "name": "views dropped",
    "formula": "view_dropped / V; number: Σ view_dropped",
    "source": "Mux, view dropped percentage",
    "clients": "all",
    "mux": "same",
    "cta": "–"
  },
  {
    "name": "live viewers",
    "formula": "views that are open, not paused, ended or failed, heard of within 75 s",
    "source": "Mux, concurrent viewers",
    "clients": "all",
    "mux": "Mux counts views that have just failed, and not those that rebuffer for more than 5 min",
    "cta": "–"
  },
  {
    "name": "live rebuffering",
    "formula": "live viewers who rebuffer at this moment / live viewers",
    "source": "own",
    "clients": "all",
    "mux": "–",
    "cta": "–"
  },
  {
    "name": "live bitrate",
    "formula": "Σ bitrate of live viewers who play / number of those whose bitrate is known",
    "source": "own",
    "clients": "those that report a bitrate",
    "mux": "–",
    "cta": "–"
  },
  {
    "name": "live views started",
    "formula": "views that begin, by the time at which their beacons come",
    "source": "own",
    "clients": "all",
    "mux": "–",
    "cta": "–"
  },
  {
    "name": "experience",
    "formula": "mean of score_view; spi_good / views where it is known",
    "source": "Mux, viewer experience score (parts); Conviva, SPI",
    "clients": "all",
    "mux": "the parts are Mux's, their combination is ours (scores)",
    "cta": "–"
  },
  {
    "name": "start-up score",
    "formula": "mean of score_startup",
    "source": "Mux, startup time score",
    "clients": "all",
    "mux": "its formula, of our start-up time",
    "cta": "–"
  },
  {
    "name": "smoothness score",
    "formula": "mean of score_smooth",
    "source": "Mux, smoothness score",
    "clients": "all",
    "mux": "its formula",
    "cta": "–"
  },
  {
    "name": "quality score",
    "formula": "mean of score_quality",
    "source": "Mux, video quality score",
    "clients": "mux, native",
    "mux": "its formula",
    "cta": "–"
  },
  {
    "name": "success score",
    "formula": "mean of score_success",
    "source": "Mux, playback success score",
    "clients": "all",
    "mux": "its formula; business exceptions have none",
    "cta": "–"
  }
];
