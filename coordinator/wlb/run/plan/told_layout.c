#include "coordinator/wlb/run/plan/told_layout.h"

#include <string.h>

#include "coordinator/wlb/run/command/launcher.h"
#include "coordinator/wlb/run/command/trainer.h"
#include "coordinator/wlb/run/plan/placement.h"
#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/print.h"

bool wlb_run_has_launcher(const struct wlb_run *run)
{
	struct wlb_launcher launcher;
	return run->options.trainer != NULL && wlb_launcher_find(run->options.command, &launcher);
}

int wlb_run_ranks_of_node(const struct wlb_run *run, const struct wlb_attempt *attempt, int *ranks,
                          struct wlb_error *error)
{
	const struct wlb_launcher_facts facts = {.nodes = attempt->node_count,
	                                         .first_nodes = run->job.first_node_count,
	                                         .gpus_per_node = run->job.gpus_per_node};
	struct wlb_launcher launcher;
	*ranks = attempt->tasks_per_node;
	if (run->options.trainer == NULL || !wlb_launcher_find(run->options.command, &launcher))
		return 0;
	return wlb_launcher_processes(run->options.command, &launcher, &facts, ranks, error);
}

int wlb_run_find_on_nodes(const struct wlb_attempt *attempt, struct wlb_auto_request *request, struct wlb_auto *found,
                          struct wlb_error *error)
{
	struct wlb_error fewer;
	struct wlb_attempt part = *attempt;
	int least = (attempt->node_count + 1) / 2;
	request->every_rank = 1;
	int rc = wlb_auto_find(request, found, error);
	while (rc < 0 && part.node_count > least) {
		struct wlb_run_topology made = {0};
		wlb_auto_free(found);
		request->nodes.count = --part.node_count;
		rc = wlb_run_topology_make(&part, &made, &fewer);
		request->topology = &made.topology;
		if (rc == 0)
			rc = wlb_auto_find(request, found, &fewer);
		wlb_run_topology_free(&made);
		request->topology = NULL;
	}
	if (rc < 0)
		request->nodes.count = attempt->node_count;
	return rc;
}

/* ---- between attempts -------------------------------------------------------------------------------------------- */

static bool must_hold(const struct wlb_run *run)
{
	const struct wlb_trainer *trainer =
		run->options.trainer != NULL ? wlb_trainer_find(run->options.trainer) : NULL;
	return trainer != NULL && !wlb_trainer_reshards(trainer, run->options.command);
}

void wlb_run_hold_layout(struct wlb_run *run, struct wlb_search_fixed *fixed)
{
	if (!must_hold(run))
		return;
	if (run->held.tp == 0)
		wlb_run_journal_read_held(run);
	if (run->held.tp == 0)
		return;
	fixed->tp = run->held.tp;
	fixed->cp = run->held.cp;
	fixed->pp = run->held.pp;
	fixed->interleave = run->held.interleave;
}

/* Whether so many nodes can hold the layout with another dp; those of a launcher without an idle rank on half of them
 * at least, as wlb_run_find_on_nodes has it. */
static bool can_hold(const struct wlb_layout *layout, int nodes, int ranks_per_node, bool is_by_node)
{
	int64_t split = (int64_t)layout->tp * layout->cp * layout->pp;
	for (int count = nodes; is_by_node && count > 0 && count >= (nodes + 1) / 2; count--)
		if ((int64_t)count * ranks_per_node % split == 0)
			return true;
	return !is_by_node && split <= (int64_t)nodes * ranks_per_node;
}

void wlb_run_warn_of_loss(const struct wlb_run *run, const struct wlb_attempt *attempt, const struct wlb_nodes *nodes,
                          const struct wlb_layout *layout)
{
	if (must_hold(run) && attempt->number == 1 && attempt->unused_count == 0 && nodes->count > 1 &&
	    !can_hold(layout, nodes->count - 1, nodes->ranks_per_node, wlb_run_has_launcher(run)))
		wlb_run_print(
			"--for=%s: this layout needs every node: the run will end when one is lost, unless the job has "
			"spares (--wlb-spares), or the command names a smaller tp, cp or pp",
			run->options.trainer);
}

int wlb_run_fail_held(const struct wlb_run *run, struct wlb_error *error)
{
	const struct wlb_run_split *held = &run->held;
	const struct wlb_trainer *trainer = wlb_trainer_find(run->options.trainer);
	const struct wlb_error why = *error;
	return wlb_fail(error,
	                "%.500s; the attempts before had tp=%d, cp=%d and pp=%d, and %s reads their checkpoint in no "
	                "other layout: give the run more nodes, %s",
	                why.message, held->tp, held->cp, held->pp, trainer->name, trainer->reshard_remedy);
}

void wlb_run_keep_layout(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	const struct wlb_layout *layout = &attempt->layout;
	const struct wlb_run_split split = {
		.tp = layout->tp,
		.cp = layout->cp,
		.pp = layout->pp,
		.interleave = attempt->settings.interleave > 0 ? attempt->settings.interleave : 1};
	if (!must_hold(run) || !attempt->has_layout || memcmp(&split, &run->held, sizeof(split)) == 0)
		return;
	run->held = split;
	wlb_run_journal_write_held(run);
}
