/* ---- what heads the page, and sections of curves ---- */

const ENDED = ["complete", "failed", "out_of_nodes", "cancelled"];

function nameOf(entry) {
  return `${entry.run.run_id}${entry.run.alias ? ` (${entry.run.alias})` : ""}`;
}

function section(id, title, ...children) {
  return element("section", {id, "aria-labelledby": `${id}-title`}, element("h2", {id: `${id}-title`}, title), children);
}

function stateText(state) {
  const kind = state === "complete" ? "good" : ENDED.includes(state) ? "bad" : "wait";
  return element("span", {class: `state ${kind}`}, text(state).replace(/_/g, " "));
}

function tookSeconds(run, now) {
  const begin = secondsOf(run.started_at), end = secondsOf(run.ended_at);
  return begin === null ? null : (end === null ? now : end) - begin;
}

function facts(entry, now) {
  const run = entry.run, last = run.attempts[run.attempts.length - 1] || {};
  const lost = run.time_lost || {};
  const pairs = [
    ["Job", `${text(run.job_name)} of ${text(run.user)}`], ["Began", run.started_at ? moment(run.started_at) + " UTC" : NONE],
    ["Took", duration(tookSeconds(run, now))], ["Nodes", text(last.nodes)], ["Layout", layoutText(last.layout)],
    ["Attempts", format(run.attempts.length + ((run.left_out || {}).attempts || 0))],
    ["Steps", `${format(run.last_step)} of ${format(run.train_iters)}`],
    ["Loss", `${format(run.first_loss)} to ${format(run.last_loss)}`], ["Tokens", run.tokens > 0 ? format(run.tokens) : NONE],
    ["Tokens/s", format(entry.curve.mean_tokens_per_s)], ["Effective training time (ETTR)", percent(lost.ettr)],
    ["Steps repeated", format(run.steps_repeated)]
  ];
  return element(
    "dl", {class: "facts"},
    pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, breakable(value)))));
}

function adviceList(entry) {
  if (entry.advice.length === 0) return element("p", {}, "Nothing that the records of this run leave no doubt about.");
  return element(
    "ul", {class: "advice"},
    entry.advice.map((item) => element("li", {}, item.text, item.command ? [" ", element("code", {}, item.command)] : null)));
}

/* Marks of a run's charts: by step, or by the value of `column` at that step. */
function marksOf(entry, column = "step") {
  const {run, curve} = entry;
  const at = (step) => (column === "step" ? step : curve[column][nearest(curve.step, step)]);
  const marks = run.checkpoints.filter((save) => isNumber(save.step))
                  .map((save) => ({x: at(save.step), kind: "checkpoint", name: `checkpoint of step ${save.step}`}));
  for (const attempt of run.attempts) {
    if (isNumber(attempt.first_step) && attempt.attempt > 1)
      marks.push(
        {x: at(attempt.first_step), kind: "attempt", name: `attempt ${attempt.attempt} begins at step ${attempt.first_step}`});
  }
  for (const fault of run.faults) {
    if (fault.cause && isNumber(fault.step))
      marks.push({x: at(fault.step), kind: "fault", name: `${faultText(fault)} at step ${fault.step}`});
  }
  return marks;
}

function faultText(fault) {
  if (fault.rank_count > 1) return text(fault.kind).replace(/_/g, " ");
  const where =
    [isNumber(fault.rank) ? `rank ${fault.rank}` : null, fault.node ? `on ${fault.node}` : null].filter(Boolean).join(" ");
  return `${text(fault.kind).replace(/_/g, " ")}${where ? `: ${where}` : ""}`;
}

/* One column of the curve of each run as series; of several runs without their marks. */
function seriesOf(entries, column, x, name) {
  return entries.map(
    (entry, i) =>
      ({name: entries.length > 1 ? `run ${nameOf(entry)}` : name, x: entry.curve[x], y: entry.curve[column], ink: i, dash: i}));
}

function lossSummary(entry) {
  const {run, curve} = entry, losses = curve.loss.filter(isNumber);
  if (losses.length === 0) return `Run ${nameOf(entry)} has recorded no loss.`;
  const least = Math.min(...losses), most = Math.max(...losses);
  const faults = run.faults.filter((fault) => fault.cause).length, bad = curve.loss.length - losses.length;
  return `Run ${nameOf(entry)}: loss ${format(run.first_loss)} at step ${format(run.first_step)}, ${
           format(run.last_loss)} at step ${format(run.last_step)}; ` +
    `least ${format(least)} at step ${format(curve.step[curve.loss.indexOf(least)])}, greatest ${format(most)} at step ${
           format(curve.step[curve.loss.indexOf(most)])}. ` +
    `${plural(run.attempts.length, "attempt")}, ${plural(faults, "fault")} that ended one, ${
           plural(run.checkpoints.length, "checkpoint")}.` +
    `${bad > 0 ? ` In ${plural(bad, "point")} the loss is not a number.` : ""}` +
    `${
           entry.is_whole ?
             "" :
             " The run is long: the curves are of steps at equal distances, and a short peak between two is not seen."}`;
}

function evaluationSeries(entries) {
  return entries.map((entry, i) => ({
                       name: entries.length > 1 ? `run ${nameOf(entry)}, evaluated` : "evaluated",
                       isDots: true,
                       x: entry.run.evaluations.map((found) => found.step),
                       y: entry.run.evaluations.map((found) => found.loss),
                       ink: entries.length > 1 ? i : 2
                     }));
}

function lossSection(entries) {
  const isOne = entries.length === 1;
  const byStep = new Chart({
    id: "loss",
    title: isOne ? "Loss by step" : "Losses by step",
    axis: "step",
    unit: "loss, nats a token",
    height: 320,
    summary: entries.map(lossSummary),
    marks: isOne ? marksOf(entries[0]) : [],
    series: [...seriesOf(entries, "loss", "step", "loss"), ...evaluationSeries(entries)]
  });
  const hasTokens = entries.every((entry) => entry.curve.tokens.at(-1) > 0);
  const byTokens = new Chart({
    id: "loss-tokens",
    title: "Losses by tokens",
    axis: "tokens",
    unit: "loss, nats a token",
    height: 320,
    summary: "The same losses where as many tokens were trained.",
    series: seriesOf(entries, "loss", "tokens", "loss")
  });
  return section("losses", "Loss", byStep.figure(), !isOne && hasTokens ? byTokens.figure() : null);
}

function speedSummary(entry) {
  const {curve} = entry, speeds = curve.tokens_per_s.filter(isNumber);
  if (speeds.length === 0) return `Run ${nameOf(entry)} has recorded no throughput.`;
  const [least, most] = [Math.min(...speeds), Math.max(...speeds)].map((speed) => format(speed));
  return `Run ${nameOf(entry)}: ${format(curve.mean_tokens_per_s)} tokens a second in the mean, ${least} to ${most} in a step.`;
}

function speedSection(entries) {
  const chart = new Chart({
    id: "speed",
    title: "Tokens a second",
    axis: "step",
    unit: "tokens/s",
    isFromZero: true,
    summary: entries.map(speedSummary),
    marks: entries.length === 1 ? marksOf(entries[0]) : [],
    series: seriesOf(entries, "tokens_per_s", "step", "tokens/s")
  });
  return section("throughput", "Throughput", chart.figure());
}

/* The mean of the numbers among the values, as a text. */
function meanText(values) {
  const known = values.filter(isNumber);
  return known.length > 0 ? format(known.reduce((sum, value) => sum + value, 0) / known.length) : NONE;
}

function balanceSummary(entry) {
  const measured = meanText(entry.curve.imbalance), predicted = meanText(entry.curve.predicted_imbalance);
  if (measured === NONE && predicted === NONE) return `Run ${nameOf(entry)} has recorded no imbalance.`;
  return `Run ${nameOf(entry)}: ${measured} measured, ${predicted} predicted, in the mean of the points.`;
}

function balanceSection(entries) {
  const {curve} = entries[0];
  const series = entries.length > 1 ? seriesOf(entries, "imbalance", "step", "measured") : [
    {name: "measured", x: curve.step, y: curve.imbalance, ink: 0},
    {name: "predicted by the packer", x: curve.step, y: curve.predicted_imbalance, ink: 1, dash: 1}
  ];
  const chart = new Chart({
    id: "imbalance",
    title: "Imbalance",
    axis: "step",
    unit: "greatest / mean",
    series,
    summary: [...entries.map(balanceSummary), "The work of the rank with the most, by the mean of all: 1 is equal work."]
  });
  return section("balance", "Balance of the packed documents", chart.figure());
}
