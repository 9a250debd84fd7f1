/* ---- pictures that are no curves ---- */

/* Draws into a box as wide as the page lets it be, now and when the width changes: draw(width) returns an SVG. */
let pictures = [];

function picture(label, draw) {
  const box = element("div", {role: "img", "aria-label": label});
  pictures.push(() => box.replaceChildren(draw(Math.max(240, box.clientWidth || 1100))));
  return box;
}

function inkKey(ink, name, extra) {
  return element("li", {}, shape("svg", {width: 14, height: 12, class: "key", "aria-hidden": "true"},
    shape("rect", {width: 14, height: 12, class: `fill ink${ink}${extra || ""}`})), name);
}

/* Shares of a whole beside each other: [{name, share, ink, pale}]. */
function shareBar(label, shares) {
  return picture(label, (width) => {
    let x = 0;
    return shape("svg", {width, height: 34, viewBox: `0 0 ${width} 34`, "aria-hidden": "true"}, shares.map(({name, share, ink, pale}) => {
      const from = x, wide = share * width, word = `${name} ${percent(share)}`;
      x += wide;
      return shape("g", {}, shape("rect", {x: from, y: 2, width: Math.max(0, wide), height: 30, class: `fill ink${ink}${pale ? " pale" : ""}`},
        shape("title", {}, word)),
      wide > 8 * word.length ? shape("text", {x: from + wide / 2, y: 21, "text-anchor": "middle", class: pale ? "" : "on-fill"}, word) : null);
    }));
  });
}

/* Means of parts over stretches of steps, on top of each other. `bands` is [{name, values, ink, pale}], `steps` the first of
   each stretch. */
function bandsChart(label, steps, bands) {
  const totals = steps.map((_, i) => bands.reduce((sum, band) => sum + (band.values[i] || 0), 0));
  return picture(label, (width) => {
    const left = 58, right = 10, top = 10, bottom = 40, height = 260, most = rangeOf(totals, true)[1];
    const [from, to] = steps.length > 1 ? [steps[0], steps[steps.length - 1]] : [steps[0] - 0.5, steps[0] + 0.5];
    const xs = steps.length > 1 ? steps : [from, to];
    const toX = (x) => left + ((x - from) / (to - from)) * (width - left - right), toY = (y) => height - bottom - (y / most) * (height - top - bottom);
    let below = xs.map(() => 0);
    const areas = bands.map((band) => {
      const above = xs.map((_, i) => below[i] + (band.values[Math.min(i, steps.length - 1)] || 0));
      const points = [...above.map((y, i) => [xs[i], y]), ...below.map((y, i) => [xs[i], y]).reverse()];
      below = above;
      return shape("path", {class: `fill ink${band.ink}${band.pale ? " pale" : ""}`, d: "M" + points.map(([x, y]) => `${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`).join("L") + "Z"},
        shape("title", {}, band.name));
    });
    return shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"},
      ticks(0, most, 5).map((y) => [shape("path", {d: `M${left} ${toY(y)}H${width - right}`, class: "grid"}),
        shape("text", {x: left - 6, y: toY(y) + 4, "text-anchor": "end", class: "label"}, format(y))]), areas,
      ticks(from, to, Math.max(2, Math.floor(width / 130))).map((x) => shape("text", {x: toX(x), y: height - bottom + 18, "text-anchor": "middle", class: "label"}, format(x))),
      shape("text", {x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle", class: "label"}, "step"));
  });
}

/* The passes of each stage over time. */
function pipelinePicture(label, schedule) {
  return picture(label, (width) => {
    const left = 62, row = schedule.stages > 16 ? 14 : 22, gap = 3, foot = 34, height = schedule.stages * (row + gap) + foot;
    const scale = (width - left - 10) / schedule.end, bottom = height - foot;
    const bars = schedule.passes.map(([stage, chunk, batch, isBackward, from, to]) => {
      const x = left + from * scale, wide = (to - from) * scale, y = stage * (row + gap), isPale = chunk % 2 === 1;
      return shape("g", {}, shape("rect", {x, y, width: wide, height: row, class: `fill ink${isBackward ? 1 : 0}${isPale ? " pale" : ""}`},
        shape("title", {}, `stage ${stage}, micro-batch ${batch}, ${isBackward ? "backward" : "forward"}${schedule.chunks > 1 ? `, chunk ${chunk}` : ""}`)),
      wide > 9 * String(batch).length + 4 && row > 16 ? shape("text", {x: x + wide / 2, y: y + row - 6, "text-anchor": "middle", class: isPale ? "" : "on-fill"}, String(batch)) : null);
    });
    const names = Array.from({length: schedule.stages}, (_, stage) => shape("text", {x: left - 8, y: stage * (row + gap) + row - 4, "text-anchor": "end", class: "label"}, `stage ${stage}`));
    const times = ticks(0, schedule.end, Math.max(2, Math.floor(width / 160))).map((at) => shape("text", {x: left + at * scale, y: bottom + 14, "text-anchor": at === 0 ? "start" : "middle", class: "label"}, format(at)));
    return shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"}, names, bars, times,
      shape("text", {x: (left + width) / 2, y: height - 4, "text-anchor": "middle", class: "label"}, schedule.unit === "s" ? "seconds" : schedule.unit));
  });
}

/* Lateness of ranks: a cell for each, a row for each node where one has few enough. */
function latenessPicture(label, ranks) {
  const most = Math.max(1, ...ranks.cells.map(([, , late]) => late || 0));
  return picture(label, (width) => {
    const ofNode = new Map();
    for (const [, node] of ranks.cells) ofNode.set(node, (ofNode.get(node) || 0) + 1);
    const widest = Math.max(...ofNode.values()), isByNode = ofNode.size > 1 && ofNode.size <= 64 && widest <= 64;
    const left = isByNode ? 110 : 0, columns = isByNode ? widest : Math.min(ranks.cells.length, Math.max(8, Math.floor(width / 16)));
    const size = Math.min(34, Math.max(6, (width - left) / columns)), rows = [...ofNode.keys()], places = new Map();
    const cells = ranks.cells.map(([rank, node, late], i) => {
      const place = isByNode ? places.get(node) || 0 : i % columns, y = size * (isByNode ? rows.indexOf(node) : Math.floor(i / columns));
      places.set(node, place + 1);
      const name = `rank ${rank}${node === null ? "" : ` on ${ranks.nodes[node]}`}: ${isNumber(late) ? `${format(late / 1000)} ms late` : "not known"}`;
      return shape("rect", {x: left + place * size, y, width: size, height: size, class: isNumber(late) ? "cell fill ink1" : "cell unknown",
        "fill-opacity": isNumber(late) ? (0.06 + 0.94 * Math.max(0, late) / most).toFixed(2) : null}, shape("title", {}, name));
    });
    const names = isByNode ? rows.map((node, i) => shape("text", {x: left - 8, y: size * i + size / 2 + 4, "text-anchor": "end", class: "label"}, node === null ? "?" : String(ranks.nodes[node]).slice(0, 16))) : [];
    const height = Math.ceil(size * (isByNode ? rows.length : Math.ceil(cells.length / columns)));
    return shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"}, names, cells);
  });
}
