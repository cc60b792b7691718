// What a viewer does on every page, and what the page saw of it. `location` names the story: <client>-slow, <client>-missing.
'use strict';

const REPORTED = ['play', 'playing', 'pause', 'waiting', 'stalled', 'seeking', 'seeked', 'resize', 'ended', 'error'];
const STALL_MS = 2500;
const ASK_AGAIN_MS = 10_000;
const DEADLINE_MS = 150_000;
const saw = { events: [], error: null, done: false, failed: null, startedMs: Date.now() };
let video = null;

function watch(element) {
  video = element;
  for (const name of REPORTED) {
    video.addEventListener(name, () => {
      saw.events.push({ name, ms: Date.now(), playhead: video.currentTime, height: video.videoHeight, why: video.error?.message });
      // The player plays on until its tab is closed, which takes seconds on a busy machine.
      if (saw.done) navigator.sendBeacon('/saw', JSON.stringify(saw));
    });
  }
}

async function until(what, holds) {
  while (!holds()) {
    if (Date.now() - saw.startedMs > DEADLINE_MS) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const last = (name) => saw.events.findLast((event) => event.name === name);

// What differs between players: what to set before, to ask for the other rendition, and to hear of a fatal error.
const PLAYERS = {
  hls: {
    prepare: () => {},
    switchTo: (hls, height) => {
      hls.nextLevel = hls.levels.findIndex((level) => level.height === height);
      return true;
    },
    onFatal: (hls, report) => hls.on('hlsError', (_, data) => data.fatal && report(data.details)),
  },
  dash: {
    // It would give up slow segments for those of the other rendition, at which Chromium's decoder sometimes fails.
    prepare: (player) => player.updateSettings({ streaming: { abr: { autoSwitchBitrate: { video: false } } } }),
    switchTo: (player, height) => {
      const wanted = player.getRepresentationsByType('video').find((one) => one.height === height);
      if (wanted) player.setRepresentationForTypeById('video', wanted.id, true);
      return Boolean(wanted);
    },
    onFatal: (player, report) => player.on('error', (event) => report(`${event.error.code}`)),
  },
  shaka: {
    prepare: () => {},
    goesBack: true,
    switchTo: (player, height) => {
      // None while it is avoided, after an error.
      const wanted = player.getVariantTracks().find((track) => track.height === height);
      // What is there of the former one is played first: thrown away at once, a seek right after it may never end.
      if (wanted) player.selectVariantTrack(wanted, false);
      return Boolean(wanted);
    },
    onFatal: (player, report) => player.addEventListener('error', (event) => report(`${event.detail.code}`)),
  },
};

async function tellStory(kind, player) {
  try {
    const commands = PLAYERS[kind];
    commands.prepare(player);
    commands.onFatal(player, (code) => (saw.error = saw.error ?? { code, ms: Date.now() }));
    await until('the first frame', () => last('playing') && video.currentTime > 0);
    if (location.hostname.includes('-missing')) {
      await until('a fatal error', () => saw.error);
      // What is there is still played: only then has the viewer lost the picture.
      await until('the picture stands', () => video.error || video.paused || last('waiting')?.ms > last('playing').ms);
      await new Promise((resolve) => setTimeout(resolve, 500));
    } else {
      await stallSwitchAndSeek(commands, player);
    }
  } catch (problem) {
    saw.failed = `${problem}`;
  }
  saw.done = true;
}

async function stallSwitchAndSeek(commands, player) {
  // The beginning came fast, the rest does not: what is there is played, then the picture stands.
  await until('the stall', () => last('waiting')?.playhead > 2);
  const waitingMs = last('waiting').ms;
  await until('its length', () => Date.now() - waitingMs >= STALL_MS);
  await fetch('/release', { method: 'POST' });
  await until('playing after the stall', () => last('playing').ms > waitingMs && video.currentTime > 5);

  const before = video.videoHeight;
  const wanted = before === 90 ? 180 : 90;
  await until('the other rendition', () => {
    // Shaka goes back by itself while segments come slowly: a change that it has made by itself is one, too.
    if (video.videoHeight === wanted || (commands.goesBack && saw.events.some(({ height }) => height === wanted))) return true;
    if (!(Date.now() - saw.askedMs < ASK_AGAIN_MS) && commands.switchTo(player, wanted)) saw.askedMs = Date.now();
    return false;
  });
  saw.switched = { from: before, to: wanted };
  const switchedAt = video.currentTime;
  await until('some of it', () => video.currentTime > switchedAt + 1);

  video.currentTime = 20;
  await until('the end of the seek', () => last('seeked')?.playhead >= 19.5);
  await until('playing after the seek', () => video.currentTime > 21);
}

// Mux Player brings its own video element.
async function ofMuxPlayer() {
  const element = document.querySelector('mux-player');
  await until('the element', () => element.media?.nativeEl && element._hls);
  watch(element.media.nativeEl);
  element.muted = true;
  element.play();
  return element._hls;
}

const plain = document.querySelector('#my-player');
if (plain) watch(plain);
