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
