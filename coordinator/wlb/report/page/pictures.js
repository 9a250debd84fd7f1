/* ---- pictures that are no curves ---- */

/* Draw into boxes as wide as the page lets them be, now and when the width changes. */
let pictures = [];

/* `draw(width)` returns an SVG. `words` say what it shows. */
function picture(words, draw) {
  const box = element("div", {role: "img", "aria-label": words});
  pictures.push(() => box.replaceChildren(draw(Math.max(240, box.clientWidth || 1100))));
  return box;
}

function inkClass(ink, isPale) {
  return `fill ink${ink}${isPale ? " pale" : ""}`;
}

function inkKey(ink, name, isPale) {
  const box = shape("rect", {width: 14, height: 12, class: inkClass(ink, isPale)});
  return element("li", {}, shape("svg", {width: 14, height: 12, class: "key", "aria-hidden": "true"}, box), name);
}

/* A filled box with words for the mouse, and with a text where that fits. */
function inkBox(place, ink, isPale, words, inside) {
  const box = shape("rect", {...place, class: inkClass(ink, isPale)}, shape("title", {}, words));
  if (place.height < 17 || place.width < 8 * inside.length + 6) return box;
  return [box, label(place.x + place.width / 2, place.y + place.height / 2 + 4, "middle", inside, isPale ? "" : "on-fill")];
}

/* Shares of a whole beside each other: [{name, share, ink, pale}]. */
function shareBar(words, shares) {
  return picture(words, (width) => {
    let end = 0;
    return canvas(width, 34, shares.map(({name, share, ink, pale}) => {
      const x = end, wide = Math.max(0, share * width), word = `${name} ${percent(share)}`;
      end += wide;
      return inkBox({x, y: 2, width: wide, height: 30}, ink, pale, word, word);
    }));
  });
}

/* The outline of a band between two lines over the same x, in pixels. */
function outline(xs, above, below) {
  const points = [...above.map((y, i) => [xs[i], y]), ...below.map((y, i) => [xs[i], y]).reverse()];
  return "M" + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L") + "Z";
}

/* Means of parts over stretches of steps, on top of each other. `bands` is [{name, values, ink, pale}], `steps` the first of
   each stretch. */
function bandsChart(words, steps, bands) {
  const totals = steps.map((_, i) => bands.reduce((sum, band) => sum + (band.values[i] || 0), 0));
  const most = rangeOf(totals, true)[1], last = steps.length - 1;
  const [from, to] = last > 0 ? [steps[0], steps[last]] : [steps[0] - 0.5, steps[0] + 0.5], xs = last > 0 ? steps : [from, to];
  return picture(words, (width) => {
    const left = 58, right = 26, top = 10, foot = 220, height = 260;
    const toX = (x) => left + ((x - from) / (to - from)) * (width - left - right),
          toY = (y) => foot - (y / most) * (foot - top);
    const ys = ticks(0, most, 5), columns = ticks(from, to, Math.max(2, Math.floor(width / 130)));
    let below = xs.map(() => 0);
    const areas = bands.map(({name, values, ink, pale}) => {
      const above = xs.map((_, i) => below[i] + (values[Math.min(i, last)] || 0));
      const path = outline(xs.map(toX), above.map(toY), below.map(toY));
      below = above;
      return shape("path", {class: inkClass(ink, pale), d: path}, shape("title", {}, name));
    });
    const rows = ys.map(
      (y) =>
        [shape("path", {d: `M${left} ${toY(y)}H${width - right}`, class: "grid"}),
         label(left - 6, toY(y) + 4, "end", tickText(y, ys))]);
    return canvas(
      width, height, rows, areas, columns.map((x) => label(toX(x), foot + 18, "middle", tickText(x, columns))),
      label((left + width - right) / 2, height - 5, "middle", "step"), label(left + 4, 9, "start", "seconds"));
  });
}

/* The passes of each stage over time. */
function pipelinePicture(words, schedule) {
  return picture(words, (width) => {
    const left = 62, row = schedule.stages > 16 ? 14 : 22, pitch = row + 3, foot = schedule.stages * pitch;
    const scale = (width - left - 10) / schedule.end, at = ticks(0, schedule.end, Math.max(2, Math.floor(width / 110)));
    const bars = schedule.passes.map(([stage, chunk, batch, isBackward, from, to]) => {
      const place = {x: left + from * scale, y: stage * pitch, width: (to - from) * scale, height: row};
      const name = `stage ${stage}, micro-batch ${batch}, ${isBackward ? "backward" : "forward"}`;
      return inkBox(
        place, isBackward ? 1 : 0, chunk % 2 === 1, schedule.chunks > 1 ? `${name}, chunk ${chunk}` : name, String(batch));
    });
    const names = Array.from({length: schedule.stages}, (_, i) => label(left - 8, i * pitch + row - 4, "end", `stage ${i}`));
    const times = at.map((time) => label(left + time * scale, foot + 14, time === 0 ? "start" : "middle", tickText(time, at)));
    const unit = schedule.unit === "s" ? "seconds" : schedule.unit;
    return canvas(width, foot + 34, names, bars, times, label((left + width) / 2, foot + 30, "middle", unit));
  });
}

/* Where the cells of ranks are: in a row for each node where one has few enough, else one after the other. */
function cellPlaces(cells, names, width) {
  const counts = new Map(), seen = new Map();
  for (const [, node] of cells) counts.set(node, (counts.get(node) || 0) + 1);
  const widest = Math.max(...counts.values()), isByNode = counts.size > 1 && counts.size <= 64 && widest <= 64;
  const longest = Math.max(...names.map((name) => name.length), 1), left = isByNode ? 8 * Math.min(16, longest) + 14 : 0,
        columns = isByNode ? widest : Math.min(cells.length, Math.max(8, Math.floor(width / 16)));
  const size = Math.min(34, Math.max(6, (width - left) / columns)), nodes = isByNode ? [...counts.keys()] : [];
  const places = cells.map(([, node], i) => {
    const place = seen.get(node) || 0;
    seen.set(node, place + 1);
    return isByNode ? {x: left + place * size, y: size * nodes.indexOf(node)} :
                      {x: (i % columns) * size, y: size * Math.floor(i / columns)};
  });
  return {places, nodes, left, size, height: Math.ceil(size * (isByNode ? nodes.length : Math.ceil(cells.length / columns)))};
}

/* Lateness of ranks: a cell for each, the stronger the colour, the later. */
function latenessPicture(words, ranks) {
  const most = Math.max(1, ...ranks.cells.map(([, , late]) => late || 0));
  return picture(words, (width) => {
    const {places, nodes, left, size, height} = cellPlaces(ranks.cells, ranks.nodes, width);
    const cells = ranks.cells.map(([rank, node, late], i) => {
      const {x, y} = places[i], isKnown = isNumber(late), shade = isKnown ? 0.06 + (0.94 * Math.max(0, late)) / most : 0;
      const name = `rank ${rank}${node === null ? "" : ` on ${ranks.nodes[node]}`}: ${
        isKnown ? `${format(Math.abs(late) / 1000)} ms ${late < 0 ? "early" : "late"}` : "not known"}`;
      const box = shape(
        "rect", {
          x,
          y,
          width: size,
          height: size,
          class: isKnown ? "cell fill ink1" : "cell unknown",
          "fill-opacity": isKnown ? shade.toFixed(2) : null
        },
        shape("title", {}, name));
      return size > 28 && rank < 1000 ?
        [box, label(x + size / 2, y + size / 2 + 4, "middle", String(rank), shade > 0.5 ? "on-fill" : "")] :
        box;
    });
    const names = nodes.map(
      (node, i) =>
        label(left - 8, size * i + size / 2 + 4, "end", node === null ? "?" : String(ranks.nodes[node]).slice(0, 16)));
    return canvas(width, height, names, cells);
  });
}
