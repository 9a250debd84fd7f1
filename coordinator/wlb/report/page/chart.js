/* ---- curves ---- */

/* What stays when the page is drawn anew: the cursor of each chart, and the stretch of x that all charts of an axis show. */
const kept = {
  cursors: new Map(),
  stretches: new Map()
};
let charts = [];

const DASHES = [null, "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2", "1 3", "6 6"];

/* Round values from `from` to `to`, about `count` of them. */
function ticks(from, to, count) {
  const rough = (to - from) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const values = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9 && values.length < 50; i++)
    values.push(i * step || 0);
  return values;
}

/* Round values of a logarithmic axis: 1, 2 and 5 times powers of ten; where few are within it, as of a linear one. */
function logTicks(from, to) {
  const values = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++) {
    for (const factor of [1, 2, 5]) values.push(factor * 10 ** power);
  }
  const within = values.filter((value) => value >= from && value <= to);
  return within.length > 2 ? within : ticks(from, to, 5);
}

/* The axis of y over the values: {least, most, ticks, at(y): 0 to 1}. It is logarithmic where the greatest value is far above
   the least: a peak leaves the rest of a curve its height. */
function yAxis(values, isFromZero) {
  const known = values.filter(isNumber), low = Math.min(...known), high = Math.max(...known);
  if (!isFromZero && low > 0 && high > 8 * low) {
    const [least, most] = [low / 1.05, high * 1.05];
    return {ticks: logTicks(least, most), name: ", logarithmic", at: (y) => Math.log(y / least) / Math.log(most / least)};
  }
  const [least, most] = rangeOf(values, isFromZero);
  return {ticks: ticks(least, most, 5), name: "", at: (y) => (y - least) / (most - least)};
}

/* A tick's number with as many digits as tell it from the next. */
function tickText(value, values) {
  const gaps = values.filter((other) => other !== value).map((other) => Math.abs(other - value));
  const step = gaps.length > 0 ? Math.min(...gaps) : Math.abs(value) || 1;
  if (Math.max(...values.map(Math.abs)) >= 1e6 && step >= 1e4) return format(value, 6);
  if (step < 1e-6) return value.toExponential(3).replace("-", MINUS);
  const digits = Math.min(8, Math.max(0, -Math.floor(Math.log10(step * 1.001))));
  return value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}).replace("-", MINUS);
}

function key(series) {
  const line = series.isDots ?
    shape("circle", {cx: 14, cy: 6, r: 4, class: `dot ink${series.ink}`}) :
    shape("path", {d: "M0 6H28", class: `line ink${series.ink}`, "stroke-dasharray": DASHES[series.dash || 0]});
  return element("li", {}, shape("svg", {width: 28, height: 12, class: "key", "aria-hidden": "true"}, line), series.name);
}

function markKey(kind, name) {
  return element(
    "li", {},
    shape(
      "svg", {width: 14, height: 12, class: "key", "aria-hidden": "true"},
      shape("path", {d: "M7 0V12", class: `mark-${kind}`})),
    name);
}

/* The least and the greatest of the numbers; [0, 1] where there are none, and never equal. */
function rangeOf(values, isFromZero) {
  let least = Infinity, most = -Infinity;
  for (const value of values) {
    if (!isNumber(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (least > most) return [0, 1];
  if (isFromZero) least = Math.min(0, least);
  const margin = (most - least) * 0.05 || Math.abs(most) * 0.05 || 0.5;
  return [isFromZero && least === 0 ? 0 : least - margin, most + margin];
}

/* The index of the point whose x is nearest; -1 where there is none. */
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && Math.abs(xs[low - 1] - x) <= Math.abs(xs[low] - x) ? low - 1 : low < xs.length ? low : -1;
}

/* A path through the points within the stretch and one beyond each of its ends; numbers that are missing interrupt it. */
function pathOf(series, stretch, toX, toY) {
  let path = "", isDrawing = false;
  const first = Math.max(0, nearest(series.x, stretch[0]) - 1),
        last = Math.min(series.x.length - 1, nearest(series.x, stretch[1]) + 1);
  for (let i = first; i <= last; i++) {
    if (!isNumber(series.y[i]) || !isNumber(series.x[i])) {
      isDrawing = false;
      continue;
    }
    path += `${isDrawing ? "L" : "M"}${toX(series.x[i]).toFixed(1)} ${toY(series.y[i]).toFixed(1)}`;
    isDrawing = true;
  }
  return path;
}

class Chart {
  /* `options`: id, title, summary, axis (its name, which charts with one stretch share), unit, isFromZero, height,
     series [{name, x, y, ink, dash, isDots}], of which x ascends, and marks [{x, kind: fault|attempt|checkpoint, name}]. */
  constructor(options) {
    Object.assign(this, {marks: [], height: 260}, options);
    this.series = options.series.filter((series) => series.y.some(isNumber));
    const xs = this.series.flatMap((series) => [series.x[0], series.x[series.x.length - 1]]);
    this.whole = xs.length > 0 ? [Math.min(...xs), Math.max(...xs)] : [0, 1];
    if (this.whole[0] === this.whole[1]) this.whole = [this.whole[0] - 0.5, this.whole[1] + 0.5];
    this.plot = element("div", {
      id: this.id,
      class: "plot",
      tabindex: 0,
      role: "slider",
      "aria-label": `${this.title}, cursor over ${this.axis}`,
      "aria-valuemin": this.whole[0],
      "aria-valuemax": this.whole[1]
    });
    this.readout = element("output", {class: "readout", "aria-live": "off"});
    this.listen();
  }

  stretch() {
    return kept.stretches.get(this.axis) || this.whole;
  }

  /* The figure; a chart without a number says so. */
  figure() {
    const caption =
      element("figcaption", {}, element("h3", {}, this.title), [this.summary].flat().map((words) => element("p", {}, words)));
    if (this.series.length === 0) return element("figure", {}, caption);
    const kinds = [["fault", "fault"], ["attempt", "attempt begins"], ["checkpoint", "checkpoint"]];
    charts.push(this);
    return element(
      "figure", {}, caption,
      element(
        "ul", {class: "legend"}, this.series.map(key),
        kinds.filter(([kind]) => this.marks.some((mark) => mark.kind === kind)).map(([kind, name]) => markKey(kind, name))),
      this.plot, this.readout, details(`${this.id}-table`, `Table of ${this.title.toLowerCase()}`, this.table()));
  }

  /* Up to 40 points at equal distances of the longest series, with the others' nearest. */
  table() {
    const longest = this.series.reduce((most, series) => (series.x.length > most.x.length ? series : most));
    const step = Math.max(1, Math.ceil(longest.x.length / 40)), rows = [];
    for (let i = 0; i < longest.x.length; i += step) rows.push(this.valuesAt(longest.x[i], longest.x[i]));
    const last = longest.x[longest.x.length - 1];
    if ((longest.x.length - 1) % step !== 0) rows.push(this.valuesAt(last, last));
    return table(this.title, [`<${this.axis}`, ...this.series.map((series) => "<" + series.name)], rows);
  }

  valuesAt(x, shown) {
    return [
      format(shown), ...this.series.map((series) => {
        const i = nearest(series.x, x);
        return i < 0 || x < series.x[0] || x > series.x[series.x.length - 1] ? NONE : format(series.y[i]);
      })
    ];
  }

  draw() {
    const width = Math.max(240, this.plot.clientWidth || 1100), left = 58, right = 26, top = 14, bottom = 40,
          height = this.height;
    const [from, to] = this.stretch();
    const shown = this.series.flatMap((series) => series.y.filter((_, i) => series.x[i] >= from && series.x[i] <= to));
    const axis = yAxis(shown, this.isFromZero);
    const toX = (x) => left + ((x - from) / (to - from)) * (width - left - right);
    const toY = (y) => height - bottom - axis.at(y) * (height - top - bottom);
    this.box = {
      left,
      right,
      top,
      bottom,
      width,
      height,
      toX,
      toY,
      toValue: (px) => from + ((px - left) / (width - left - right)) * (to - from)
    };
    const clip = `${this.id}-clip`;
    const svg = canvas(
      width, height, shape("clipPath", {id: clip}, shape("rect", {x: left - 4, y: 0, width: width - left - right + 8, height})),
      this.axes(from, to, axis),
      shape("g", {"clip-path": `url(#${clip})`}, this.markShapes(), this.series.map((series) => this.lineShape(series))));
    this.overlay = shape("g", {});
    svg.append(this.overlay);
    this.plot.replaceChildren(svg);
    this.showCursor();
  }

  axes(from, to, axis) {
    const {left, right, top, bottom, width, height, toX, toY} = this.box;
    const ys = axis.ticks, xs = ticks(from, to, Math.max(2, Math.floor(width / 130)));
    const rows = ys.map(
      (y) => shape(
        "g", {}, shape("path", {d: `M${left} ${toY(y).toFixed(1)}H${width - right}`, class: "grid"}),
        label(left - 6, toY(y) + 4, "end", tickText(y, ys))));
    const columns = xs.map(
      (x) => shape(
        "g", {}, shape("path", {d: `M${toX(x).toFixed(1)} ${height - bottom}v5`, class: "axis"}),
        label(toX(x), height - bottom + 18, "middle", tickText(x, xs))));
    return [
      rows, columns, shape("path", {d: `M${left} ${height - bottom}H${width - right}`, class: "axis"}),
      label((left + width - right) / 2, height - 5, "middle", this.axis),
      label(left + 4, top - 3, "start", (this.unit || "") + axis.name)
    ];
  }

  markShapes() {
    const {top, bottom, height, toX} = this.box;
    return this.marks.filter((mark) => isNumber(mark.x)).map((mark) => {
      const x = toX(mark.x).toFixed(1), foot = height - bottom;
      const path = mark.kind === "checkpoint" ? `M${x} ${foot}v-9` :
        mark.kind === "fault" ? `M${x} ${top}V${foot}m-4 -${foot - top + 6}h8l-4 7z` :
                                `M${x} ${top}V${foot}`;
      return shape("path", {d: path, class: `mark-${mark.kind}`}, shape("title", {}, mark.name));
    });
  }

  lineShape(series) {
    const {toX, toY} = this.box;
    if (!series.isDots && series.x.length > 1) {
      return shape("path", {
        d: pathOf(series, this.stretch(), toX, toY),
        class: `line ink${series.ink}`,
        "stroke-dasharray": DASHES[series.dash || 0]
      });
    }
    return series.x.map(
      (x, i) => isNumber(series.y[i]) ?
        shape("circle", {cx: toX(x), cy: toY(series.y[i]), r: 4, class: `dot ink${series.ink}`}) :
        null);
  }

  /* Points of x at which some series has one, within the stretch. */
  stops() {
    const [from, to] = this.stretch(),
                 longest = this.series.reduce((most, series) => (series.x.length > most.x.length ? series : most));
    return longest.x.filter((x) => x >= from && x <= to);
  }

  moveTo(x) {
    if (!isNumber(x)) return;
    kept.cursors.set(this.id, x);
    this.showCursor();
  }

  showCursor() {
    const x = kept.cursors.get(this.id), {top, bottom, height, toX, toY} = this.box;
    this.overlay.replaceChildren();
    if (x === undefined) return;
    const [shown, ...values] = this.valuesAt(x, x);
    const near = this.marks.filter((mark) => Math.abs(toX(mark.x) - toX(x)) < 5).slice(0, 3).map((mark) => mark.name);
    const said =
      [`${this.axis} ${shown}`, ...this.series.map((series, i) => `${series.name} ${values[i]}`), ...near].join(" \u00b7 ");
    this.readout.textContent = said;
    this.plot.setAttribute("aria-valuenow", x);
    this.plot.setAttribute("aria-valuetext", said);
    const [from, to] = this.stretch();
    if (x < from || x > to) return;
    this.overlay.append(shape("path", {d: `M${toX(x).toFixed(1)} ${top}V${height - bottom}`, class: "cursor"}));
    for (const series of this.series) {
      const i = nearest(series.x, x);
      if (i >= 0 && isNumber(series.y[i]) && Math.abs(toX(series.x[i]) - toX(x)) < 8) {
        this.overlay.append(shape("circle", {cx: toX(series.x[i]), cy: toY(series.y[i]), r: 4, class: `dot ink${series.ink}`}));
      }
    }
  }

  /* Shows the stretch in all charts of the axis; the whole without one. */
  zoom(stretch) {
    if (stretch === null)
      kept.stretches.delete(this.axis);
    else if (stretch[1] - stretch[0] > (this.whole[1] - this.whole[0]) * 1e-6)
      kept.stretches.set(this.axis, stretch);
    for (const chart of charts)
      if (chart.axis === this.axis) chart.draw();
  }

  press(event) {
    const stops = this.stops(), at = nearest(stops, kept.cursors.get(this.id) ?? stops[0]),
          page = Math.max(1, Math.round(stops.length / 20));
    const to = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at + 1,
      ArrowDown: at - 1,
      PageUp: at + page,
      PageDown: at - page,
      Home: 0,
      End: stops.length - 1
    }[event.key];
    const [from, end] = this.stretch(), middle = kept.cursors.get(this.id) ?? (from + end) / 2;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (to !== undefined)
      this.moveTo(stops[Math.min(stops.length - 1, Math.max(0, to))]);
    else if (event.key === "+")
      this.zoom([Math.max(this.whole[0], middle - (end - from) / 4), Math.min(this.whole[1], middle + (end - from) / 4)]);
    else if (event.key === "-")
      this.zoom(end - from > (this.whole[1] - this.whole[0]) * 0.5 ? null : [middle - (end - from), middle + (end - from)]);
    else if (event.key === "0" || event.key === "Escape")
      this.zoom(null);
    else
      return;
    event.preventDefault();
  }

  listen() {
    const xOf = (event) => event.clientX - this.plot.getBoundingClientRect().left;
    const nearestStop = (px) => this.stops()[nearest(this.stops(), this.box.toValue(px))];
    let pressed = null;
    this.plot.addEventListener("keydown", (event) => this.press(event));
    this.plot.addEventListener("dblclick", () => this.zoom(null));
    this.plot.addEventListener("pointerdown", (event) => {
      pressed = event.pointerType === "mouse" ? xOf(event) : null;
    });
    this.plot.addEventListener("pointermove", (event) => {
      this.moveTo(nearestStop(xOf(event)));
      if (pressed === null || Math.abs(xOf(event) - pressed) < 6) return;
      const {top, bottom, height} = this.box, x = Math.min(pressed, xOf(event));
      this.overlay.append(
        shape("rect", {x, y: top, width: Math.abs(xOf(event) - pressed), height: height - top - bottom, class: "chosen"}));
    });
    this.plot.addEventListener("pointerup", (event) => {
      const ends = pressed === null ? null : [
        pressed, xOf(event)
      ].sort((a, b) => a - b).map((px) => Math.min(this.stretch()[1], Math.max(this.stretch()[0], this.box.toValue(px))));
      if (ends !== null && Math.abs(xOf(event) - pressed) >= 6) this.zoom(ends);
      pressed = null;
    });
  }
}
