#include "coordinator/wlbd/rules/decision.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_decision(struct wlbd_decision *decision, enum wlbd_verb verb, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int set_decision(struct wlbd_decision *decision, enum wlbd_verb verb, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	wlb_text_vformat(decision->reason, sizeof(decision->reason), format, args);
	va_end(args);
	decision->verb = verb;
	return 0;
}

bool wlbd_exit_is_deliberate(int exit_code)
{
	return exit_code == WLBD_EXIT_ORDERED || exit_code == WLBD_EXIT_SAVED || exit_code == WLBD_EXIT_BAD_INPUT;
}

static const char *why_unusable(const struct wlbd_candidate_node *node)
{
	if (node->silent)
		return "is lost";
	return node->down ? "is down" : NULL;
}

bool wlbd_node_may_return(const struct wlbd_candidate_node *node)
{
	return (node->silent || node->down) && node->failed == NULL && !node->evicted && node->avoided == NULL;
}

bool wlbd_node_may_pass(const struct wlbd_candidate_node *node)
{
	return !node->silent && !node->down && (node->failed != NULL || node->evicted) && node->avoided == NULL;
}

static int least_nodes(const struct wlbd_decision_facts *facts)
{
	return facts->min_nodes > 0 ? facts->min_nodes : 1;
}

/* For which reasons nodes that work are excluded. */
struct reasons {
	bool failed, evicted, avoided;
};

static const struct reasons all_reasons = {true, true, true};

/* Returns why a node is not used; NULL: it is. */
static const char *why_excluded(const struct wlbd_candidate_node *node, struct reasons reasons)
{
	const char *why = why_unusable(node);
	if (why == NULL && reasons.failed)
		why = node->failed;
	if (why == NULL && reasons.evicted && node->evicted)
		why = "was evicted";
	return why == NULL && reasons.avoided ? node->avoided : why;
}

/* Gives up the weakest reason to exclude nodes. Returns false where none is left. */
static bool give_up_weakest(struct reasons *reasons)
{
	bool *weakest = reasons->avoided ? &reasons->avoided : reasons->evicted ? &reasons->evicted : &reasons->failed;
	bool was_given = *weakest;
	*weakest = false;
	return was_given;
}

/* "n3 is lost, n7 is down; 6 nodes remain", cut where it grows too long; "8 nodes" when none is missing. */
static void describe_unused_nodes(const struct wlbd_decision_facts *facts, const int *use, int left, char *text,
                                  size_t size)
{
	size_t length = 0;
	text[0] = '\0';
	for (int i = 0, used = 0; i < facts->node_count; i++) {
		bool is_used = used < left && use[used] == i;
		const char *why = why_excluded(&facts->nodes[i], all_reasons);
		used += is_used;
		if (is_used || why == NULL || length > size / 2)
			continue;
		length += (size_t)snprintf(text + length, size - length, "%s%.64s %s", length > 0 ? ", " : "",
		                           facts->nodes[i].name, why);
	}
	if (length == 0)
		snprintf(text, size, "%d node%s", left, left == 1 ? "" : "s");
	else
		snprintf(text + length, size - length, "; %d node%s", left, left == 1 ? " remains" : "s remain");
}

static int list_usable(const struct wlbd_decision_facts *facts, struct reasons reasons, int *use)
{
	int count = 0;
	for (int i = 0; i < facts->node_count; i++)
		if (why_excluded(&facts->nodes[i], reasons) == NULL)
			use[count++] = i;
	return count;
}

/* Where a reason to exclude nodes was given up for a layout that does not need all of these nodes, the surplus is
 * excluded again, first the nodes with the strongest reason. Returns how many nodes are left in use[]. */
static int exclude_surplus(const struct wlbd_decision_facts *facts, int nodes, int left, int *use)
{
	const struct reasons strongest_first[] = {{.failed = true}, {.evicted = true}, {.avoided = true}};
	for (size_t reason = 0; reason < sizeof(strongest_first) / sizeof(strongest_first[0]); reason++) {
		int surplus = left - nodes, kept = 0;
		for (int i = 0; i < left; i++)
			if (surplus > 0 && why_excluded(&facts->nodes[use[i]], strongest_first[reason]) != NULL)
				surplus--;
			else
				use[kept++] = use[i];
		left = kept;
	}
	return left;
}

static bool is_other_switch(const struct wlbd_candidate_node *a, const struct wlbd_candidate_node *b)
{
	return strcmp(a->leaf != NULL ? a->leaf : "", b->leaf != NULL ? b->leaf : "") != 0;
}

/* Moves the `nodes` neighbours of use[] that are under the fewest switches, of equals the first, to its beginning. */
static int prefer_few_switches(const struct wlbd_decision_facts *facts, int nodes, int left, int *use)
{
	int *all = calloc((size_t)left + 1, sizeof(*all));
	int best = 0, fewest = 0;
	if (all == NULL)
		return -1;
	for (int i = 0; i < left; i++)
		all[i] = use[i];
	for (int end = 1, changes = 0; end < left; end++) {
		changes += is_other_switch(&facts->nodes[all[end - 1]], &facts->nodes[all[end]]);
		if (end >= nodes)
			changes -=
				is_other_switch(&facts->nodes[all[end - nodes]], &facts->nodes[all[end - nodes + 1]]);
		if (end == nodes - 1 || (end >= nodes && changes < fewest)) {
			fewest = changes;
			best = end - nodes + 1;
		}
	}
	for (int i = 0; i < left; i++)
		use[i] = i < nodes ? all[best + i] : i - nodes < best ? all[i - nodes] : all[i];
	free(all);
	return 0;
}

/* The model is not known here: rank 0 of wlb-worker checks the layout again with it. */
static int layout_of(const struct wlbd_decision_facts *facts, int nodes, struct wlb_layout *layout,
                     struct wlb_error *error)
{
	struct wlb_policy policy = facts->policy;
	const struct wlb_nodes used = {.count = nodes, .ranks_per_node = facts->tasks_per_node};
	/* After a failure the run continues with as many replicas of the model as there is space for. */
	if (facts->first_total > 0)
		policy.fixed.dp = 0;
	return wlb_layout_choose(&policy, &used, NULL, layout, error);
}

/* Returns the greatest number of nodes, from `least` to `most`, that the layout can use; 0 with the reason where there
 * is none. The first attempt uses what the user asked for or none: a product that does not fit is then the user's
 * mistake and not a failure. */
static int fit_nodes(const struct wlbd_decision_facts *facts, int most, int least, struct wlb_layout *layout,
                     struct wlb_error *error)
{
	struct wlb_error first;
	for (int nodes = most; nodes >= least; nodes--) {
		if (layout_of(facts, nodes, layout, nodes == most ? &first : NULL) == 0)
			return nodes;
		if (facts->first_total == 0)
			break;
	}
	*error = first;
	return 0;
}

static int choose_nodes(const struct wlbd_decision_facts *facts, struct reasons reasons, struct wlbd_decision *decision)
{
	char left_text[384];
	struct wlb_error error;
	int least = least_nodes(facts), left = list_usable(facts, reasons, decision->use);
	/* Of nodes that the job has lost, or that did not answer when the run began, one of the two numbers knows. */
	int total = facts->first_total > facts->node_count ? facts->first_total : facts->node_count;
	int most = total - facts->spares;
	const char *why_least = facts->min_nodes > 0 ? " (--wlb-min-nodes)" : "";

	describe_unused_nodes(facts, decision->use, left, left_text, sizeof(left_text));
	if (left < least && left == facts->node_count && total > left) /* Slurm has taken the others from the job */
		return set_decision(decision, WLBD_STOP_OUT_OF_NODES,
		                    "%d of %d nodes remain, and the run needs at least %d%s", left, total, least,
		                    why_least);
	if (left < least)
		return set_decision(decision, WLBD_STOP_OUT_OF_NODES, "%s, and the run needs at least %d%s", left_text,
		                    least, why_least);
	if (most < least) /* more spares than the run can spare */
		most = least;
	if (most > left)
		most = left;
	int nodes = fit_nodes(facts, most, least, &decision->layout, &error);
	if (nodes == 0)
		return set_decision(decision, facts->first_total == 0 ? WLBD_STOP_FAILED : WLBD_STOP_OUT_OF_NODES,
		                    "%s; %s", left_text, error.message);
	left = exclude_surplus(facts, nodes, left, decision->use);
	describe_unused_nodes(facts, decision->use, left, left_text, sizeof(left_text));
	if (prefer_few_switches(facts, nodes, left, decision->use) != 0)
		return -1;
	decision->verb = WLBD_START;
	decision->use_count = nodes;
	decision->spare_count = left - nodes;
	wlb_text_format(decision->reason, sizeof(decision->reason), "%s", left_text);
	return 0;
}

/* What makes attempts fail, such as a file system that is unavailable, may pass. Returns for how long there is no
 * attempt. */
static double back_off_s(const struct wlbd_decision_facts *facts)
{
	double pause_s = facts->attempts_without_progress > 0 ? facts->back_off_s : 0;
	for (int i = 1; i < facts->attempts_without_progress; i++)
		pause_s *= 4;
	return pause_s - facts->since_end_s;
}

static int wait_to_back_off(const struct wlbd_decision_facts *facts, double wait_s, struct wlbd_decision *decision)
{
	const double longest_s = 5; /* between two questions of the launcher */
	decision->retry_after_s = wait_s < longest_s ? wait_s : longest_s;
	return set_decision(decision, WLBD_WAIT, "%d attempt%s ended without a new step: the next one starts in %.0f s",
	                    facts->attempts_without_progress,
	                    facts->attempts_without_progress == 1 ? " has" : "s in a row have", wait_s);
}

static int stop_for_program(const struct wlbd_decision_facts *facts, struct wlbd_decision *decision)
{
	char where[64] = "before its first step";
	if (facts->program_step > 0)
		snprintf(where, sizeof(where), "at step %lld", (long long)facts->program_step);
	return set_decision(decision, WLBD_STOP_FAILED,
	                    "the program fails %s on more than one node: %d attempts in a row ended without a new "
	                    "step; correct the program or its %s",
	                    where, facts->attempts_without_progress, facts->program_step > 0 ? "data" : "arguments");
}

static int stop_without_progress(const struct wlbd_decision_facts *facts, struct wlbd_decision *decision)
{
	if (facts->program_step >= 0)
		return stop_for_program(facts, decision);
	return set_decision(decision, WLBD_STOP_FAILED,
	                    "%d attempts in a row ended without a new step and without a lost node",
	                    facts->attempts_without_progress);
}

int wlbd_decide(const struct wlbd_decision_facts *facts, struct wlbd_decision *decision)
{
	*decision = (struct wlbd_decision){.verb = WLBD_WAIT, .retry_after_s = WLBD_RETRY_SOON_S};
	if (facts->judging)
		return set_decision(decision, WLBD_WAIT, "what broke the previous attempt is being established");
	/* Where its input was accepted before, it may be a file system or a GPU that was refused: such attempts are
	 * counted. */
	if (facts->previous_exit_code == WLBD_EXIT_BAD_INPUT && !facts->has_worked)
		return set_decision(
			decision, WLBD_STOP_FAILED,
			"the last attempt ended with exit code 2, bad input: the same again would fail the same way");
	if (facts->attempts_without_progress >= WLBD_WITHOUT_PROGRESS_MAX)
		return stop_without_progress(facts, decision);
	double wait_s = back_off_s(facts);
	if (wait_s > 0)
		return wait_to_back_off(facts, wait_s, decision);
	decision->use = calloc((size_t)facts->node_count + 1, sizeof(*decision->use));
	if (decision->use == NULL)
		return -1;
	struct reasons reasons = all_reasons;
	do {
		if (choose_nodes(facts, reasons, decision) != 0)
			return -1;
	} while (decision->verb != WLBD_START && give_up_weakest(&reasons));
	return 0;
}

void wlbd_decision_free(struct wlbd_decision *decision)
{
	free(decision->use);
	decision->use = NULL;
}
