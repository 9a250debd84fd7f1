/* ---- pipeline and ranks ---- */

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

/* How late ranks are, or were in the last samples before the end, and what verdicts say of them. */
function ranksOf(entry) {
  const {run, ranks} = entry,
              verdicts = run.verdicts.map(
                (found) =>
                  [found.kind.replace(/_/g, " "), found.ranks.join(", "), found.nodes, found.state,
                   isNumber(found.cost_percent) ? percent(found.cost_percent / 100) : NONE, found.evidence]);
  const found = verdicts.length > 0 ? table("Verdicts", ["What", ".Ranks", "Nodes", "State", "<Cost", "Evidence"], verdicts) :
                                      element("p", {}, "No rank was found to hang or to be slow.");
  if (!ranks) {
    return [
      element(
        "p", {},
        ENDED.includes(run.state) ? "No sample of how late its ranks were is stored." :
                                    "The ranks report no calls, so that their lateness is not known."),
      found
    ];
  }
  const late = ranks.cells.filter((cell) => isNumber(cell[2])).sort((a, b) => b[2] - a[2]);
  const summary = `Rank ${late[0][0]} enters collectives latest, ${
                    format(late[0][2] / 1000)} ms after the others of its groups in the mean of the last ones${
                    ENDED.includes(run.state) ? " before the end" : ""}` +
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

/* ---- why this layout ---- */

/* wlbd finds it from the operations and the machine of the plan. */
const NO_MFU = "MFU is not known without a plan.";

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
      element("p", {}, `${plan.reason || `The layout ${layoutText(plan.layout)} was given, and nothing was planned`}. ${NO_MFU}`)
    ];
  const rows = [
    planRow("chosen", plan), ...(plan.next || []).map((other) => planRow("next", other)),
    ...(plan.misfits || []).map((other) => planRow("does not fit", other))
  ];
  const compared = isNumber(took) && isNumber(predicted) && took > 0 ?
    `A step was predicted to take ${duration(predicted)} and took ${duration(took)} (${
      percent((predicted - took) / took).replace("-", MINUS)}); ` +
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
  return planned.length > 0 ? planned.map(planOf) : element("p", {}, `No attempt has a plan. ${NO_MFU}`);
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
