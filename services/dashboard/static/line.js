// A small line of a series: drawn by hand as SVG, with a readout under the pointer. Unknown values are gaps.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 100;

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// The stretches of the series in which every value is known, as [index, value] pairs.
function stretches(values) {
  const found = [];
  let open = null;
  values.forEach((value, at) => {
    if (value === null) {
      open = null;
      return;
    }
    if (!open) found.push((open = []));
    open.push([at, value]);
  });
  return found;
}

// Draws `values` into `box`. `toText(value, index)` is the text of one value; `label` names the series for those who cannot see it.
export function line(box, values, { label, toText }) {
  const known = values.filter((value) => value !== null);
  const top = Math.max(1, ...known) * 1.08;
  const last = Math.max(1, values.length - 1);
  const x = (at) => (at / last) * WIDTH;
  const y = (value) => HEIGHT - (value / top) * HEIGHT;
  const picture = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  const newest = known.length ? `newest ${known.at(-1)}, highest ${Math.max(...known)}` : "nothing known";
  picture.setAttribute("aria-label", `${label}: ${newest}`);
  picture.append(shape("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }));
  for (const stretch of stretches(values)) {
    // A single value between gaps is a short dash: a path of one point would not be seen.
    const points = stretch.length > 1 ? stretch : [stretch[0], [Math.min(last, stretch[0][0] + 0.5), stretch[0][1]]];
    const path = points.map(([at, value], n) => `${n ? "L" : "M"}${x(at).toFixed(2)} ${y(value).toFixed(2)}`).join("");
    const [from, to] = [x(points[0][0]).toFixed(2), x(points.at(-1)[0]).toFixed(2)];
    picture.append(shape("path", { class: "fill", d: `${path}L${to} ${HEIGHT}L${from} ${HEIGHT}Z` }));
    picture.append(shape("path", { class: "stroke", d: path }));
  }
  const readout = box.querySelector(".readout") ?? box.appendChild(document.createElement("span"));
  readout.className = "readout";
  box.querySelector("svg")?.remove();
  box.prepend(picture);
  box.onpointermove = (event) => point(box, picture, readout, values, toText, event.clientX);
  box.onpointerleave = () => {
    box.dataset.at = "";
    clear(picture, readout);
  };
  // A picture that comes while the pointer rests keeps its readout.
  if (box.dataset.at) point(box, picture, readout, values, toText, Number(box.dataset.at));
}

function clear(picture, readout) {
  picture.querySelector(".marker")?.remove();
  readout.textContent = "";
}

function point(box, picture, readout, values, toText, clientX) {
  const { left, width } = box.getBoundingClientRect();
  const last = Math.max(1, values.length - 1);
  const at = Math.round(Math.min(1, Math.max(0, (clientX - left) / width)) * last);
  clear(picture, readout);
  box.dataset.at = clientX;
  if (values[at] === null || values[at] === undefined) return;
  const x = (at / last) * WIDTH;
  picture.append(shape("line", { class: "marker", x1: x, x2: x, y1: 0, y2: HEIGHT }));
  readout.textContent = toText(values[at], at);
}
