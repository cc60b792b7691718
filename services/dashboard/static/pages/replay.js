// Replays one session: ?customer=...&session=..., and &view= is the address of the view that it was reached from. Each payload is an array of rrweb events, as docs/recordings.md records them.

import { viewAddress } from '../core/place/place.js';
import { byId } from './format.js';

const STEP_MS = 100;
const ASKED_AGAIN_MAX = 5;
// rrweb's type of an event that holds the whole page.
const FULL_SNAPSHOT = 2;

const query = new URLSearchParams(location.search);
const names = { customer: query.get('customer') ?? '', session: query.get('session') ?? '' };
const status = byId('status');
const play = byId('play');
const position = byId('position');
const at = byId('at');

const view = viewAddress(query.get('view'), location.origin);
const back = byId('back');
// Without a view there are those of the customer.
back.href = view ?? `/views?${new URLSearchParams({ customer: names.customer })}`;
back.textContent = view ? 'Back to the view' : 'Views';
back.hidden = false;

async function get(path, parameters) {
  const address = `${path}?${new URLSearchParams({ ...names, ...parameters })}`;
  let answer = await fetch(address);
  // A long session has more payloads than may be asked for at once.
  for (let left = ASKED_AGAIN_MAX; answer.status === 429 && left; left -= 1) {
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers.get('Retry-After') ?? 1)));
    answer = await fetch(address);
  }
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.detail ?? body.title ?? answer.status);
  return body;
}

// What is stored, in order, and how many numbers are not.
async function listed() {
  const payloads = [];
  let absent = 0;
  for (let from = 0; from !== null;) {
    const part = await get('/v1/recordings', { from });
    payloads.push(...part.payloads.map(([sequence]) => sequence));
    absent = part.absent.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    from = part.next;
  }
  return { payloads, absent };
}

// The recorded page as wide as there is room between the edges of its box, and never wider than it was.
function fitted({ wrapper, iframe }) {
  const stage = byId('stage');
  const [width, height] = [Number(iframe.width), Number(iframe.height)];
  if (!width || !height) return;
  const scale = Math.min(1, (stage.parentElement.clientWidth - 2) / width);
  wrapper.style.transform = `scale(${scale})`;
  stage.style.width = `${Math.floor(width * scale)}px`;
  stage.style.minHeight = stage.style.height = `${Math.floor(height * scale)}px`;
}

function show(replayer, events, absent) {
  const total = replayer.getMetaData().totalTime;
  replayer.iframe.title = 'The recorded page';
  const missing = absent ? `, ${absent} ${absent === 1 ? 'part is' : 'parts are'} missing` : '';
  status.textContent = `${names.session}: ${events.length} ${events.length === 1 ? 'event' : 'events'}, ${(total / 1000).toFixed(1)} s${missing}`;
  position.max = total;
  play.disabled = position.disabled = false;
  let playing = false;
  const fit = () => fitted(replayer);
  replayer.on('resize', fit);
  new ResizeObserver(fit).observe(byId('stage').parentElement);
  // Nothing can be seen before the first whole page. The replayer shows what came before the time it is given: one more,
  // and it shows what came at that time, too.
  const first = events.find((event) => event.type === FULL_SNAPSHOT) ?? events[0];
  const showAt = (ms) => replayer.pause(Math.max(ms, first.timestamp - events[0].timestamp) + 1);
  const stand = () => { play.textContent = playing ? 'Pause' : 'Play'; };
  play.addEventListener('click', () => {
    playing = !playing;
    const from = Number(position.value) >= total ? 0 : Number(position.value);
    if (playing) replayer.play(from); else replayer.pause();
    stand();
  });
  position.addEventListener('input', () => {
    playing = false;
    showAt(Number(position.value));
    stand();
  });
  replayer.on('finish', () => {
    playing = false;
    position.value = total;
    stand();
  });
  setInterval(() => {
    if (playing) position.value = replayer.getCurrentTime();
    at.textContent = `${(Number(position.value) / 1000).toFixed(1)} s`;
  }, STEP_MS);
  // The whole page as it was at the end of the recording shows before anybody presses play.
  showAt(total);
  position.value = total;
  document.body.dataset.state = 'ready';
}

try {
  const { payloads, absent } = await listed();
  const events = [];
  for (const [done, number] of payloads.entries()) {
    status.textContent = `Loading part ${done + 1} of ${payloads.length}…`;
    events.push(...await get('/v1/recordings/payload', { number }));
  }
  if (events.length < 2) throw new Error('there is nothing to replay yet');
  // Of the script before this one.
  const { Replayer } = /** @type {any} */ (globalThis).rrweb;
  show(new Replayer(events, { root: byId('stage'), mouseTail: false }), events, absent);
} catch (error) {
  status.textContent = `Cannot be replayed: ${/** @type {Error} */ (error).message}`;
  document.body.dataset.state = 'failed';
}
