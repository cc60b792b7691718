// @ts-check
// Written by `python -m deploy.client_lines` from the blocks of docs/clients.md: do not edit.

/** `text` has the document's names in place of one's own. `note` is what the document says below the lines. */
export const CLIENTS = [
  {
    "name": "mux-embed",
    "title": "mux-embed",
    "note": "For other players leave out hlsjs and Hls, or use their adapter mux-data-…. The domain is called over https; only one that ends in localhost or localhost:<port> is called over http.",
    "text": "const hls = new Hls();\nmux.monitor('#my-player', {\n  beaconCollectionDomain: 'collect.example.com',\n  hlsjs: hls,\n  Hls,\n  data: { env_key: 'acme', player_name: 'My player', video_id: 'my-video' },\n});\nhls.loadSource('https://media.example.com/my-video/master.m3u8');\nhls.attachMedia(document.querySelector('#my-player'));"
  },
  {
    "name": "mux-player",
    "title": "Mux Player",
    "note": "It needs no playback-id: src plays what you host.",
    "text": "<mux-player\n  src=\"https://media.example.com/my-video/master.m3u8\"\n  env-key=\"acme\"\n  beacon-collection-domain=\"collect.example.com\"\n  metadata-video-id=\"my-video\"\n  metadata-player-name=\"My player\"\n></mux-player>"
  },
  {
    "name": "mux-android",
    "title": "Mux Android (ExoPlayer, Media3)",
    "note": "It posts {\"events\": […]} to /android, with or without gzip, without metadata. Source: the SDK's public code.",
    "text": "val customOptions = CustomOptions().setBeaconCollectionDomain(\"collect.example.com\")\nexoPlayer.monitorWithMuxData(context, \"acme\", customerData, playerView, customOptions)"
  },
  {
    "name": "mux-ios",
    "title": "Mux iOS, tvOS (AVPlayer)",
    "note": "Source: the SDK's public headers. Its core is a binary, so its requests were not seen. After the first view, screen Integration shows what was rejected.",
    "text": "let playerData = MUXSDKCustomerPlayerData(environmentKey: \"acme\")\nlet data = MUXSDKCustomerData(customerPlayerData: playerData, videoData: videoData, viewData: nil)!\nMUXSDKStats.monitorAVPlayerViewController(\n  controller, withPlayerName: \"main\", customerData: data,\n  automaticErrorTracking: true, beaconCollectionDomain: \"collect.example.com\")"
  },
  {
    "name": "mux-roku",
    "title": "Mux Roku",
    "note": "It sends {\"events\": […]} without metadata. Every event is complete, values are text, and the key is named property_ke. Source: the SDK's public code.",
    "text": "m.mux.setField(\"config\", { property_key: \"acme\", beaconCollectionDomain: \"collect.example.com\" })"
  },
  {
    "name": "hls.js",
    "title": "hls.js 1.7 (not hls.light)",
    "note": "rr causes one request for each segment; leave it out if you do not need request figures. With batchSize above 1 the last, partial batch is lost when the tab closes. The line with Hls.Events.ERROR is needed: hls.js 1.7 reports most errors before it decides that they are fatal. Failed requests are not reported. No CMCD player sends an event when the tab closes: such a view ends by silence.",
    "text": "let tell;\nconst hls = new Hls({\n  cmcd: {\n    version: 2,\n    contentId: 'my-video',\n    eventTargets: [{ url: 'https://collect.example.com/cmcd/acme', events: ['ps', 'e', 't', 'bc', 'rr', 'ce'] }],\n    reporterCallback: (reporter) => (tell = reporter.recordCustomEvent),\n  },\n});\nhls.on(Hls.Events.ERROR, (_, { fatal, details }) => fatal && tell(`playhead-error:${details}`));\nhls.loadSource('https://media.example.com/my-video/master.m3u8');\nhls.attachMedia(document.querySelector('#my-player'));"
  },
  {
    "name": "dash.js",
    "title": "dash.js 5.2",
    "note": "Without enabledKeys dash.js 5.2 sends only an event's name and time, without the session. It does not mark errors as fatal: a view has failed if nothing plays after an error.",
    "text": "const player = dashjs.MediaPlayer().create();\nplayer.updateSettings({\n  streaming: {\n    cmcd: {\n      enabled: true,\n      version: 2,\n      cid: 'my-video',\n      eventTargets: [\n        {\n          enabled: true,\n          url: 'https://collect.example.com/cmcd/acme',\n          events: ['ps', 'e', 't', 'rr'],\n          enabledKeys: 'sid cid sn sta st sf br pb tb bl mtp msd bsd ltc pr ec ot rc ttfb ttlb url'.split(' '),\n        },\n      ],\n    },\n  },\n});\nplayer.initialize(document.querySelector('#my-player'), 'https://media.example.com/my-video/main.mpd', true);"
  },
  {
    "name": "shaka",
    "title": "Shaka Player 5.2",
    "note": "Use shaka-player.compiled.debug.js or your own build: the minified files of 5.2.12 leave the player's state (sta) out. Their views have start-up time, requests and bitrates, but no stalls and seeks, and have failed if their last record is an error. Configure before load: each later configure restarts the numbers of the session, which counts as another play. Shaka does not report which error it was, nor a rendition that the viewer chose.",
    "text": "const player = new shaka.Player();\nplayer.configure({\n  cmcd: {\n    enabled: true,\n    version: 2,\n    contentId: 'my-video',\n    eventTargets: [{ enabled: true, url: 'https://collect.example.com/cmcd/acme', events: ['ps', 'e', 't', 'bc', 'rr'] }],\n  },\n});\nawait player.attach(document.querySelector('#my-player'));\nawait player.load('https://media.example.com/my-video/main.mpd');"
  },
  {
    "name": "epas",
    "title": "EPAS (Eyevinn's SDKs)",
    "note": "Give it a sessionId: the web SDK 0.2.0 ignores the one in the answer. It sends nothing when the tab closes.",
    "text": "import { PlayerAnalyticsConnector } from '@eyevinn/player-analytics-client-sdk-web';\n\nconst analytics = new PlayerAnalyticsConnector('https://collect.example.com/epas/acme');\nawait analytics.init({ sessionId: crypto.randomUUID() });\nanalytics.load(document.querySelector('#my-player'));\nanalytics.reportMetadata({ contentId: 'my-video' });\n// What the SDK cannot see: here of hls.js.\nhls.on(Hls.Events.LEVEL_SWITCHED, (_, { level }) => {\n  const { bitrate, width, height } = hls.levels[level];\n  analytics.reportBitrateChange({ bitrate: bitrate / 1000, width, height });\n});\nhls.on(Hls.Events.ERROR, (_, { fatal, type, details }) => {\n  if (fatal) analytics.reportError({ category: type, code: details });\n});"
  },
  {
    "name": "native",
    "title": "any other player in a page",
    "note": "",
    "text": "const video = document.querySelector('#my-player');\nlet viewId, seq;\nfunction tell(event, attrs = {}) {\n  const now = Date.now();\n  const playhead = Math.round(video.currentTime * 1000);\n  const beacon = { view_id: viewId, event, time_ms: now, seq: ++seq, playhead_ms: playhead, attrs };\n  fetch('https://collect.example.com/v1/beacons?key=acme', {\n    method: 'POST',\n    keepalive: true,\n    body: JSON.stringify({ sent_time_ms: now, beacons: [beacon] }),\n  });\n}\nfunction begin() {\n  viewId = crypto.randomUUID();\n  seq = 0;\n  tell('viewstart', { video_id: 'my-video', player_name: 'My player' });\n}\nbegin();\nvideo.addEventListener('playing', () => tell('playing'));\nvideo.addEventListener('pause', () => tell('pause'));\nvideo.addEventListener('waiting', () => video.seeking || tell('rebufferstart'));\nvideo.addEventListener('seeking', () => tell('seekstart'));\nvideo.addEventListener('seeked', () => tell('seekend'));\nvideo.addEventListener('ended', () => tell('ended'));\nvideo.addEventListener('error', () => tell('error', { error_code: `${video.error.code}` }));\naddEventListener('pagehide', () => tell('viewend'));\n// The browser may keep a page and show it again. Its view has ended, so another begins.\naddEventListener('pageshow', (shown) => {\n  if (!shown.persisted) return;\n  begin();\n  video.paused || tell('playing');\n});\nsetInterval(() => video.paused || tell('heartbeat'), 10_000);"
  }
];
