/* ---- sections ---- */

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

/* Tokens in a second of the run's steps, in the mean. */
function meanSpeed(curve) {
  const times = curve.step_time_s.filter(isNumber), last = curve.tokens.length - 1;
  const speeds = curve.tokens_per_s.filter(isNumber).sort((a, b) => a - b);
  return last < 0 || times.length === 0 ? null : speeds[Math.floor(speeds.length / 2)];
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
    ["Tokens/s, median", format(meanSpeed(entry.curve))], ["Effective training time (ETTR)", percent(lost.ettr)],
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
    summary: entries.map(lossSummary).join(" "),
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

function speedSection(entries) {
  const summary = entries
                    .map((entry) => {
                      const speeds = entry.curve.tokens_per_s.filter(isNumber).sort((a, b) => a - b);
                      return speeds.length === 0 ?
                        `Run ${nameOf(entry)} has recorded no throughput.` :
                        `Run ${nameOf(entry)}: ${
                          format(speeds[Math.floor(speeds.length / 2)])} tokens a second in the median of the points, ${
                          format(speeds[0])} to ${format(speeds[speeds.length - 1])}.`;
                    })
                    .join(" ");
  return section("throughput", "Throughput", new Chart({
                                               id: "speed",
                                               title: "Tokens a second",
                                               axis: "step",
                                               unit: "tokens/s",
                                               isFromZero: true,
                                               summary,
                                               marks: entries.length === 1 ? marksOf(entries[0]) : [],
                                               series: seriesOf(entries, "tokens_per_s", "step", "tokens/s")
                                             }).figure());
}

/* ---- where the time went ---- */

const CAUSES = {
  detect: "from a fault until it was found",
  decide: "from its discovery until the next attempt was decided",
  start: "from the decision until the workers of the attempt had started",
  load: "from then until their first step began: model, checkpoint, data",
  repeated: "steps that were done again or lost, and those that a fault cut short",
  checkpoint: "saving, while no step ran",
  idle: "ranks and nodes of the job that an attempt did not use",
  other: "before the first attempt, after the last, between steps, a step under way"
};

function timeOf(entry) {
  const lost = entry.run.time_lost;
  if (!lost || !(lost.held_s > 0)) return element("p", {}, `Run ${nameOf(entry)} has held no node yet.`);
  const causes = lost.causes.filter((cause) => cause.seconds > 0.05);
  const shares = [
    ...(isNumber(lost.effective_s) ? [{name: "training", share: lost.effective_s / lost.held_s, ink: 0}] : []),
    ...causes.map((cause, i) => ({name: cause.cause, share: cause.seconds / lost.held_s, ink: 1 + i % 6, pale: true}))
  ];
  const label = `Run ${nameOf(entry)}: of ${duration(lost.held_s)}, ` +
    shares.map((part) => `${part.name} ${percent(part.share)}`).join(", ");
  const rows = [
    ...(isNumber(lost.effective_s) ? [["training", duration(lost.effective_s), percent(lost.ettr), "steps that count"]] : []),
    ...causes.map((cause) => [cause.cause, duration(cause.seconds), percent(cause.share), CAUSES[cause.cause]])
  ];
  return [
    element("h3", {}, `Run ${nameOf(entry)} held its nodes for ${duration(lost.held_s)}`),
    element(
      "p", {},
      isNumber(lost.ettr) ? `${percent(lost.ettr)} of the time for which the job had its nodes advanced training (ETTR).` :
                            "No step is recorded, so it is not known which part advanced training."),
    shareBar(label, shares), element("ul", {class: "legend"}, shares.map((part) => inkKey(part.ink, part.name, part.pale))),
    table(`Time of run ${nameOf(entry)}`, ["What", "<Time", "<Share", "Meaning"], rows)
  ];
}

const PARTS = {
  forward_s: "forward passes",
  backward_s: "backward passes",
  tp_s: "tensor-parallel communication",
  cp_s: "context-parallel communication",
  pp_s: "sending to another stage",
  bubble_s: "waiting for another stage",
  dp_s: "gradients and weights over replicas",
  optimizer_s: "optimizer",
  loader_s: "waiting for data",
  world_s: "agreeing, and waiting for the slowest rank"
};

/* The eight largest parts by the mean, the others together. */
function bandsOf(parts) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const all =
    parts.names.map((name, i) => ({name: PARTS[name] || name, values: parts.seconds[i], mean: mean(parts.seconds[i])}))
      .filter((band) => band.mean > 0)
      .sort((a, b) => b.mean - a.mean);
  const bands = all.slice(0, 7), rest = all.slice(7);
  if (rest.length > 0)
    bands.push({
      name: "other parts",
      values: parts.step.map((_, i) => rest.reduce((sum, band) => sum + band.values[i], 0)),
      mean: rest.reduce((sum, band) => sum + band.mean, 0)
    });
  return bands.map((band, i) => ({...band, ink: i % 7, pale: i % 2 === 1}));
}

function partsOf(entry) {
  const parts = entry.parts;
  if (parts.step.length === 0)
    return element("p", {}, `The trainer of run ${nameOf(entry)} does not say where the time of its steps went.`);
  const bands = bandsOf(parts), whole = bands.reduce((sum, band) => sum + band.mean, 0);
  const summary = `Mean over ranks: ${
    bands.slice(0, 3).map((band) => `${band.name} ${percent(band.mean / whole)}`).join(", ")} of the time of a step.`;
  const rows = bands.map((band) => [band.name, duration(band.mean), percent(band.mean / whole)]);
  return element(
    "figure", {},
    element("figcaption", {}, element("h3", {}, `Seconds of a step, run ${nameOf(entry)}`), element("p", {}, summary)),
    element("ul", {class: "legend"}, bands.map((band) => inkKey(band.ink, band.name, band.pale))),
    bandsChart(`Seconds of a step by part. ${summary}`, parts.step, bands),
    details(
      `parts-${entry.run.run_id}`, "Table of the parts of a step",
      table("Parts of a step", ["Part", "<Time", "<Share"], rows)));
}

/* ---- pipeline, ranks, balance ---- */

function pipelineOf(entry) {
  const schedule = entry.pipeline, last = entry.run.attempts[entry.run.attempts.length - 1];
  if (!schedule) {
    return element(
      "p", {},
      last && last.layout && last.layout.pp === 1 ?
        "The layout has one stage: there is no pipeline, and no stage waits for another." :
        "The schedule is not known: it is drawn for layouts that 'wlb run' or wlb-worker has planned, of up to 4,096 passes.");
  }
  const summary = `${schedule.stages} stages, ${plural(schedule.micro_batches, "micro-batch", "micro-batches")}${
                    schedule.chunks > 1 ? `, ${schedule.chunks} chunks of layers a stage` : ""}: ` +
    `with micro-batches of equal work, stages wait ${percent(schedule.bubble)} of the time. ` +
    (schedule.unit === "s" ? "A pass is as long as it was in the mean; communication takes no time here." :
                             "A backward pass is drawn twice as long as a forward pass.");
  return element(
    "figure", {}, element("figcaption", {}, element("p", {}, summary)),
    element(
      "ul", {class: "legend"}, inkKey(0, "forward"), inkKey(1, "backward"),
      schedule.chunks > 1 ? inkKey(0, "every second chunk is paler", true) : null),
    pipelinePicture(`Pipeline of run ${nameOf(entry)}. ${summary}`, schedule));
}

/* What faults and verdicts say of ranks and nodes, for lateness itself is not stored. */
function ranksOf(entry) {
  const {run, ranks} = entry,
              verdicts = run.verdicts.map(
                (found) =>
                  [found.kind.replace(/_/g, " "), found.ranks.join(", "), found.nodes, found.state,
                   isNumber(found.cost_percent) ? percent(found.cost_percent / 100) : NONE, found.evidence]);
  const found = verdicts.length > 0 ? table("Verdicts", ["What", ".Ranks", ".Nodes", "State", "<Cost", "Evidence"], verdicts) :
                                      element("p", {}, "No rank was found to hang or to be slow.");
  if (!ranks) {
    return [
      element(
        "p", {},
        ENDED.includes(run.state) ?
          "How late each rank is, is known only while a run goes on, and this one has ended. Verdicts are what was found from it." :
          "The ranks report no calls, so that their lateness is not known."),
      found
    ];
  }
  const late = ranks.cells.filter((cell) => isNumber(cell[2])).sort((a, b) => b[2] - a[2]);
  const summary = `Rank ${late[0][0]} enters collectives latest, ${
                    format(late[0][2] / 1000)} ms after the others of its groups in the mean of the last ones` +
    `${
                    ranks.ranks_each > 1 ?
                      `; a cell is ${ranks.ranks_each} ranks, the latest of which counts` :
                      ""}. The stronger the colour, the later; full colour is ${format(late[0][2] / 1000)} ms.`;
  const rows =
    late.slice(0, 20).map(([rank, node, us]) => [format(rank), node === null ? NONE : ranks.nodes[node], format(us / 1000)]);
  return [
    element(
      "figure", {}, element("figcaption", {}, element("p", {}, summary)), latenessPicture(summary, ranks),
      details(`late-${run.run_id}`, "Table of the latest ranks", table("Latest ranks", ["<Rank", "Node", "<Late, ms"], rows))),
    found
  ];
}

function balanceSection(entries) {
  const isOne = entries.length === 1;
  const series = isOne ?
    [
      {name: "measured", x: entries[0].curve.step, y: entries[0].curve.imbalance, ink: 0},
      {name: "predicted by the packer", x: entries[0].curve.step, y: entries[0].curve.predicted_imbalance, ink: 1, dash: 1}
    ] :
    seriesOf(entries, "imbalance", "step", "measured");
  const mean = (values) => {
    const known = values.filter(isNumber);
    return known.length > 0 ? format(known.reduce((sum, value) => sum + value, 0) / known.length) : null;
  };
  const summary =
    entries
      .map((entry) => {
        const measured = mean(entry.curve.imbalance), predicted = mean(entry.curve.predicted_imbalance);
        return measured === null && predicted === null ?
          `Run ${nameOf(entry)} has recorded no imbalance.` :
          `Run ${nameOf(entry)}: ${measured || NONE} measured, ${predicted || NONE} predicted, in the mean of the points.`;
      })
      .join(" ") +
    " The work of the rank with the most, by the mean of all: 1 is equal work.";
  return section(
    "balance", "Balance of the packed documents",
    new Chart({id: "imbalance", title: "Imbalance", axis: "step", unit: "greatest / mean", summary, series}).figure());
}

/* ---- why this layout ---- */

function planRow(what, plan) {
  return [
    what, layoutText(plan.layout), format(plan.interleave), format(plan.micro_batches), format(plan.micro_batch_size),
    text(plan.recompute), isNumber(plan.step_s) ? duration(plan.step_s) : NONE, bytes(plan.memory_bytes),
    plan.missing_bytes > 0 ? `${bytes(plan.missing_bytes)} too much` : "\u00a0"
  ];
}

function planOf(attempt) {
  const plan = attempt.plan, took = attempt.step_s, predicted = plan.step_s;
  if (!plan.machine)
    return [
      element("h3", {}, `Attempt ${attempt.attempt}`),
      element("p", {}, plan.reason || `The layout ${layoutText(plan.layout)} was given, and nothing was planned.`)
    ];
  const rows = [
    planRow("chosen", plan), ...(plan.next || []).map((other) => planRow("next", other)),
    ...(plan.misfits || []).map((other) => planRow("does not fit", other))
  ];
  const compared = isNumber(took) && isNumber(predicted) && took > 0 ?
    `A step was predicted to take ${duration(predicted)} and took ${duration(took)} (${
      (100 * (predicted - took) / took).toFixed(0)} %); ` +
      `MFU ${percent(plan.utilization)} predicted, ${percent(plan.utilization * predicted / took)} measured.` :
    "No step was measured.";
  const used = attempt.memory_bytes > 0 ? ` A rank allocated ${bytes(attempt.memory_bytes)} at most; ${
                                            bytes(plan.memory_bytes - (plan.memory_margin_bytes || 0))} was predicted.` :
                                          "";
  return [
    element("h3", {}, `Attempt ${attempt.attempt}: ${layoutText(plan.layout)}`),
    element("p", {}, `Chosen: ${text(plan.reason)}.`),
    element(
      "p", {},
      `Machine: ${text(plan.machine)}${plan.machine_from ? ` (from ${plan.machine_from})` : ""}, ${
        bytes(plan.memory_limit_bytes)} of memory for a rank. ${compared}${used}`),
    table(
      `Layouts of attempt ${attempt.attempt}`,
      ["", ".Layout", "<Interleave", "<Micro-batches", "<Size", "Recompute", "<Step", "<Memory", ""], rows)
  ];
}

function layoutsOf(entry) {
  const planned = entry.run.attempts.filter((attempt) => attempt.plan);
  return planned.length > 0 ? planned.map(planOf) : element("p", {}, "No attempt has a plan.");
}

/* ---- what happened ---- */

/* Everything with a time, in the order of time. */
function storyOf(run) {
  const rows = [];
  const add = (time, attempt, what, detail, isBad) => {
    if (time) rows.push({time, attempt, what, detail, isBad});
  };
  for (const attempt of run.attempts) {
    add(
      attempt.started_at || attempt.created_at, attempt.attempt, "attempt began",
      `${text(attempt.nodes)}, ${layoutText(attempt.layout)}${
        isNumber(attempt.resumed_step) && attempt.resumed_step > 0 ? `, from step ${attempt.resumed_step}` : ""}`);
    add(
      attempt.ended_at, attempt.attempt, `attempt ${attempt.state}`,
      [attempt.reason, (attempt.error || {}).text].filter(Boolean).join(" \u2014 "),
      attempt.state === "failed" || attempt.state === "lost");
  }
  for (const fault of run.faults)
    add(fault.time, fault.attempt, `${faultText(fault)} (${fault.cause ? "cause" : "consequence"})`, fault.detail, fault.cause);
  for (const verdict of run.verdicts)
    add(verdict.found_at, verdict.attempt, `verdict: ${verdict.kind.replace(/_/g, " ")}`, verdict.evidence, true);
  for (const event of run.events) add(event.time, event.attempt, event.kind.replace(/_/g, " "), event.detail);
  return rows.sort((a, b) => (secondsOf(a.time) || 0) - (secondsOf(b.time) || 0));
}

function storySection(entry) {
  const {run} = entry, rows = storyOf(run), left = run.left_out || {};
  const older = ["attempts", "faults", "verdicts", "events"].reduce((sum, name) => sum + (left[name] || 0), 0);
  return [
    run.reason ? element("p", {}, element("strong", {}, "Why it ended: "), run.reason) : null,
    older > 0 ? element(
                  "p", {class: "faint"},
                  `${format(older)} older entries are not in this page; 'wlb show ${run.run_id} --json' has them.`) :
                null,
    table(
      `Story of run ${nameOf(entry)}`, [".Time, UTC", "<Attempt", "What", "Detail"],
      rows.map(
        (row) =>
          [moment(row.time), format(row.attempt), row.isBad ? element("strong", {class: "bad"}, row.what) : row.what,
           row.detail]))
  ];
}

function commandsOf(entry) {
  const rows =
    entry.run.attempts.filter((attempt) => attempt.output)
      .map(
        (attempt) => [format(attempt.attempt), element("code", {}, text(attempt.output.command)), text(attempt.output.stdout)]);
  return rows.length > 0 ? [element("h3", {}, "Commands"), table("Commands", ["<Attempt", "Command", "Output"], rows)] : null;
}

function settingsSection(entries) {
  const names = [...new Set(entries.flatMap((entry) => entry.settings.map(([name]) => name)))];
  const valueOf = entries.map((entry) => new Map(entry.settings));
  const rows = names.map((name) => [name, ...valueOf.map((values) => values.get(name))]);
  const differs = (row) => row.slice(2).some((value) => value !== row[1]);
  const sorted = entries.length > 1 ? [...rows.filter(differs), ...rows.filter((row) => !differs(row))] : rows;
  return section(
    "settings", "Settings",
    entries.length > 1 ?
      element("p", {}, `${plural(rows.filter(differs).length, "setting differs", "settings differ")}; they come first.`) :
      null,
    table(
      "Settings", ["Name", ...entries.map((entry) => (entries.length > 1 ? `Run ${nameOf(entry)}` : "Value"))], sorted,
      (row, i) => (differs(sorted[i]) ? "differs" : null)));
}
