/* ---- the page ---- */

function header(data, now) {
  const runs = data.runs, isOne = runs.length === 1;
  const title = isOne ? `Run ${nameOf(runs[0])}` : `Runs ${runs.map(nameOf).join(", ")}`;
  document.title = `${title} \u2013 WLB`;
  if (isOne) return element("header", {}, element("h1", {}, title, " ", stateText(runs[0].run.state)), facts(runs[0], now));
  const rows = runs.map((entry) => {
    const run = entry.run, last = run.attempts[run.attempts.length - 1] || {};
    return [
      nameOf(entry), stateText(run.state), text(run.job_name), text(run.user), layoutText(last.layout), text(last.nodes),
      format(run.last_step), format(run.last_loss), format(entry.curve.mean_tokens_per_s), percent((run.time_lost || {}).ettr),
      duration(tookSeconds(run, now))
    ];
  });
  return element(
    "header", {}, element("h1", {}, title),
    table(
      "Runs", [".Run", "State", "Job", "User", ".Layout", "Nodes", "<Last step", "<Loss", "<Tokens/s", "<ETTR", "<Took"],
      rows));
}

/* The sections of one run that are no curves, which several runs have in a fold each. */
function partsOfRun(entry, isOne) {
  const own = (id, title, ...children) =>
    isOne ? section(id, title, children) : element("div", {}, element("h3", {}, title), children);
  return [
    own("pipeline", "Pipeline of a step", pipelineOf(entry)), own("ranks", "Lateness of ranks", ranksOf(entry)),
    own("layout", "Why this layout", layoutsOf(entry)),
    own("story", "What happened and what was done", storySection(entry), commandsOf(entry))
  ];
}

function sections(data) {
  const runs = data.runs, isOne = runs.length === 1;
  const advice =
    isOne ? adviceList(runs[0]) : runs.map((entry) => [element("h3", {}, `Run ${nameOf(entry)}`), adviceList(entry)]);
  const time = section("time", "Where the time went", runs.map(timeOf), runs.map(partsOf));
  const own = isOne ? partsOfRun(runs[0], true) :
                      section(
                        "each", "Each run",
                        runs.map(
                          (entry) => element(
                            "details", {class: "run", id: `run-${entry.run.run_id}`},
                            element("summary", {}, `Run ${nameOf(entry)}`), partsOfRun(entry, false))));
  return [
    section("next", "What to do next", advice), lossSection(runs), speedSection(runs), time, balanceSection(runs), own,
    settingsSection(runs)
  ].flat();
}

function contents(parts) {
  return element(
    "nav", {"aria-label": "Sections"},
    element(
      "ul", {},
      parts.map((part) => element("li", {}, element("a", {href: `#${part.id}`}, part.querySelector("h2").textContent)))));
}

/* A table that is wider than its place can be scrolled with the keyboard too. */
function drawAll() {
  for (const region of document.querySelectorAll(".scroll")) region.tabIndex = region.scrollWidth > region.clientWidth ? 0 : -1;
  for (const draw of pictures) draw();
  for (const chart of charts) chart.draw();
}

/* Draws the page anew from data of wlb_report_data(). What is open, the focus and the cursors stay. */
function wlbUpdate(data) {
  const open = [...document.querySelectorAll("details[open]")].map((node) => node.id);
  const focus = document.activeElement ? document.activeElement.id : "";
  charts = [];
  pictures = [];
  const parts = sections(data);
  const status = document.getElementById("status") || element("p", {id: "status", class: "status hint", role: "status"});
  const page = [
    element("a", {class: "skip", href: "#content", id: "skip"}, "Skip to the content"), header(data, data.made_at),
    contents(parts),
    element(
      "main", {id: "content", tabindex: -1}, status,
      element(
        "p", {class: "hint"},
        "Charts: drag to zoom, double-click for all. With the keyboard: arrow keys, Page Up and Page Down move the cursor, ",
        "+ and \u2212 zoom, 0 shows all."),
      parts),
    element(
      "footer", {},
      `Made ${new Date(1000 * data.made_at).toISOString().slice(0, 19).replace("T", " ")} UTC by WLB ${
        data.version}. Times are in UTC.`)
  ];
  document.body.replaceChildren(...page, ...document.querySelectorAll("script"));
  for (const id of open) {
    const node = document.getElementById(id);
    if (node) node.open = true;
  }
  if (focus) document.getElementById(focus)?.focus({preventScroll: true});
  drawAll();
}

/* Folded pictures have no width until they are opened. */
document.addEventListener("toggle", drawAll, true);

/* Asks the page's own server for new data until each run has ended. */
function follow(path) {
  const EVERY_MS = 3000, say = (message) => {
    document.getElementById("status").textContent = message;
  };
  const ask = async () => {
    try {
      const reply = await fetch(path, {cache: "no-store", credentials: "same-origin"}), data = await reply.json();
      if (!reply.ok)
        say(`Not followed: ${data.error}`);
      else {
        wlbUpdate(data);
        if (data.runs.every((entry) => ENDED.includes(entry.run.state)))
          return say("The run has ended: the page is not renewed any more.");
        say(`Renewed ${new Date(1000 * data.made_at).toISOString().slice(11, 19)} UTC.`);
      }
    } catch (failure) {
      say(`Not followed: the server of this page does not answer (${failure.message}).`);
    }
    return setTimeout(ask, EVERY_MS);
  };
  setTimeout(ask, EVERY_MS);
}

{
  const source = document.getElementById("wlb-data");
  let width = window.innerWidth;
  wlbUpdate(JSON.parse(source.textContent));
  if (source.dataset.follow) follow(source.dataset.follow);
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) drawAll();
    width = window.innerWidth;
  });
}
