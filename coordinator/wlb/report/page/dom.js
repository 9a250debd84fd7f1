/* The script of the page of wlb report, made of the files of this folder. Text of the data is set as text, never as HTML. */
"use strict";

/* ---- elements and numbers ---- */

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined));
  return node;
}

/* An element of HTML, and one of SVG. Texts among the children become text nodes. */
function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function shape(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/* A text in a picture; `anchor` is start, middle or end, `kind` a class. */
function label(x, y, anchor, words, kind = "label") {
  return shape("text", {x, y, "text-anchor": anchor, class: kind}, words);
}

function canvas(width, height, ...children) {
  return shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"}, children);
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

const MINUS = "\u2212", NONE = "\u2013";

/* About four digits: "0.01234", "12.35", "1,234", "1.23 M". */
function format(value, digits = 4) {
  if (!isNumber(value)) return NONE;
  const size = Math.abs(value);
  for (const [unit, name] of [[1e15, " P"], [1e12, " T"], [1e9, " G"], [1e6, " M"]]) {
    if (size >= unit) return Number((value / unit).toPrecision(3)) + name;
  }
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size > 0 && size < 1e-4) return value.toExponential(2).replace("-", MINUS);
  return String(Number(value.toPrecision(digits))).replace("-", MINUS);
}

function percent(share) {
  if (!isNumber(share)) return NONE;
  return (share > 0 && share < 0.001 ? format(100 * share, 2) : (100 * share).toFixed(1)) + "\u00a0%";
}

/* "12.3 s", "4 min 5 s", "2 h 4 min", "3 d 2 h". */
function duration(seconds) {
  if (!isNumber(seconds)) return NONE;
  if (Math.abs(seconds) < 100) return format(seconds, 3) + " s";
  const units = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
  const [unit, name, lesser, lesserName] = units.find(([least]) => Math.abs(seconds) >= least);
  const whole = Math.floor(seconds / unit), rest = Math.round((seconds - whole * unit) / lesser);
  return rest > 0 ? `${whole} ${name} ${rest} ${lesserName}` : `${whole} ${name}`;
}

function bytes(count) {
  if (!isNumber(count) || count <= 0) return NONE;
  return count >= 1e9 ? (count / 1e9).toFixed(2) + " GB" : (count / 1e6).toFixed(1) + " MB";
}

function secondsOf(time) {
  const at = Date.parse(time);
  return Number.isNaN(at) ? null : at / 1000;
}

/* A time of the coordinator, in UTC, since the page may be read elsewhere. */
function moment(time) {
  const at = secondsOf(time);
  return at === null ? NONE : new Date(1000 * at).toISOString().slice(0, 19).replace("T", " ");
}

function layoutText(layout) {
  return layout ? `tp=${layout.tp},cp=${layout.cp},pp=${layout.pp},dp=${layout.dp}` : NONE;
}

function plural(count, one, many) {
  return `${format(count)} ${count === 1 ? one : many || one + "s"}`;
}

/* A name, or what is shown where there is none. */
function text(value) {
  return value === null || value === undefined || value === "" ? NONE : String(value);
}

/* A text that may be broken after commas. */
function breakable(words) {
  return words.split(/(?<=,)/).flatMap((part, i) => i > 0 ? [element("wbr"), part] : [part]);
}

/* `columns` are titles, with "<" before the title of a column of numbers, and "." before one that is not wrapped. */
function table(caption, columns, rows, rowClass) {
  const kinds = columns.map((title) => ({"<": "right nowrap", ".": "nowrap"}[title[0]] || null));
  const titles = columns.map((title) => title.replace(/^[<.]/, ""));
  const cells = (row) => row.map((cell, i) => element("td", {class: kinds[i]}, cell instanceof Node ? cell : text(cell)));
  return element(
    "div", {class: "scroll", role: "region", "aria-label": caption},
    element(
      "table", {},
      element("thead", {}, element("tr", {}, titles.map((title, i) => element("th", {scope: "col", class: kinds[i]}, title)))),
      element("tbody", {}, rows.map((row, i) => element("tr", {class: rowClass ? rowClass(row, i) : null}, cells(row))))));
}

/* Details that stay open, or closed, when the page is drawn anew: by their id. */
function details(id, title, ...children) {
  return element("details", {id}, element("summary", {}, title), children);
}
