#include "coordinator/wlb/run/attempt/attempt_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "common/json_text.h"
#include "common/rank_end.h"
#include "coordinator/slurm/slurm_api.h"

bool wlb_attempt_end_is_refused(const struct wlb_run *run, const struct wlb_attempt *attempt,
                                const struct wlb_first_exit_scan *scan)
{
	int tasks = run->job.tasks > 0 ? run->job.tasks : wlb_attempt_tasks(attempt);
	return scan->refusal.failed_tasks >= tasks && (attempt->node_count > 1 || run->job.node_count == 1);
}

/* Returns the names, "n4,n2", as "n[2,4]"; NULL where that fails. The caller frees it. */
static char *fold_names(const char *list)
{
	char **names = NULL, **sorted = NULL, *folded = NULL;
	int count = 0, sorted_count = 0;
	if (wlb_hostlist_expand(list, &names, &count, NULL) == 0 &&
	    wlb_hostlist_sort(names, count, &sorted, &sorted_count, NULL) == 0)
		folded = wlb_hostlist_fold(sorted, sorted_count, NULL);
	wlb_strings_free(sorted, sorted_count);
	wlb_strings_free(names, count);
	return folded;
}

/* Ranks that end because their fence timed out are not the cause. In this fence the ranks of a step find each other. */
static void note_fence_timeout(struct wlb_attempt *attempt, const struct wlb_attempt_end_facts *facts)
{
	const struct wlb_fence_timeout *fence = &facts->scan->fence;
	if (!fence->known || attempt->exit_code == 0 || attempt->ended_by == WLB_ENDED_BY_CANCEL ||
	    attempt->end_reason[0] != '\0')
		return;
	char *nodes = fold_names(fence->nodes);
	wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason),
	                "the Slurm step did not start: a PMIx fence was ended by PMIxTimeout on %.800s%s",
	                nodes != NULL ? nodes : fence->nodes, fence->has_more ? " and more nodes" : "");
	attempt->exit_code = EX_TEMPFAIL; /* which the coordinator takes for no fault of a rank */
	free(nodes);
}

static void note_first_exit(struct wlb_attempt *attempt, const struct wlb_attempt_end_facts *facts)
{
	const struct wlb_first_exit *first = &facts->scan->first;
	if (!first->known || attempt->exit_code == 0 || attempt->ended_by == WLB_ENDED_BY_CANCEL || attempt->is_refused)
		return;
	attempt->first_exit = *first;
	attempt->exit_code = first->exit_code;
	if (attempt->end_reason[0] == '\0')
		wlb_rank_end_text(attempt->end_reason, sizeof(attempt->end_reason), first->rank, first->node,
		                  first->exit_code);
}

/* Returns the node that did not launch its tasks; NULL: the attempt has no such rank. */
static const char *find_failed_node(const struct wlb_attempt *attempt, const struct wlb_launch_failure *failure)
{
	if (failure->rank < 0)
		return failure->node;
	int node = attempt->tasks_per_node > 0 ? failure->rank / attempt->tasks_per_node : 0;
	return node < attempt->node_count ? attempt->nodes[node] : NULL;
}

static void note_launch_failure(struct wlb_attempt *attempt, const struct wlb_attempt_end_facts *facts)
{
	struct wlb_run_launch_failure *failure = &attempt->launch_failure;
	const char *node = facts->scan->launch.known ? find_failed_node(attempt, &facts->scan->launch) : NULL;
	if (node == NULL || attempt->exit_code == 0 || attempt->ended_by == WLB_ENDED_BY_CANCEL)
		return;
	snprintf(failure->node, sizeof(failure->node), "%s", node);
	wlb_text_show(failure->why, sizeof(failure->why), facts->scan->launch.why);
	failure->time_s = facts->launch_failed_s;
	if (attempt->end_reason[0] == '\0')
		wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason),
		                "the Slurm step was not launched on %s: %s", failure->node, failure->why);
}

/* Ends the run where no later attempt would do better. Ranks that could not execute the command have not
 * crashed. */
static void note_refusal(const struct wlb_run *run, struct wlb_attempt *attempt,
                         const struct wlb_attempt_end_facts *facts)
{
	const struct wlb_refusal *refusal = &facts->scan->refusal;
	bool is_of_tasks = wlb_attempt_end_is_refused(run, attempt, facts->scan);
	const struct wlb_first_exit_scan *scan = facts->scan;
	bool has_step = scan->first.known || scan->launch.known || scan->fence.known || scan->slurm_end.known;
	if (!refusal->known || attempt->exit_code == 0 || attempt->ended_by != WLB_ENDED_BY_ITSELF ||
	    attempt->no_step || (!is_of_tasks && (has_step || refusal->failed_tasks > 0)))
		return;
	attempt->is_refused = true;
	wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason), "%s; %s", refusal->why, refusal->remedy);
}

static void note_last_error(struct wlb_attempt *attempt, const struct wlb_attempt_end_facts *facts)
{
	if (attempt->exit_code != 0 && attempt->end_reason[0] == '\0' && facts->scan->last_error[0] != '\0' &&
	    !facts->scan->first.known)
		wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason), "srun ended with exit code %d: %s",
		                attempt->exit_code, facts->scan->last_error);
}

/* A task that then ended in its own way may be the cause after all. */
static void note_slurm_end(struct wlb_attempt *attempt, const struct wlb_attempt_end_facts *facts)
{
	if ((!facts->scan->slurm_end.known && !attempt->is_refused) || attempt->exit_code == 0 || attempt->stopped ||
	    attempt->ended_by != WLB_ENDED_BY_ITSELF)
		return;
	attempt->slurm_end = *facts->slurm_end;
	if (attempt->end_reason[0] == '\0')
		wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason), "%s", facts->slurm_end->why);
}

/* The attempt went on without the ranks that died: it has succeeded where another one has, whatever srun's code is. */
static void note_survivors(struct wlb_attempt *attempt, const struct wlb_attempt_end_facts *facts)
{
	const struct wlb_first_exit_scan *scan = facts->scan;
	bool is_broken = scan->step_aborted || scan->slurm_end.known || scan->launch.known || scan->fence.known;
	if (attempt->ended_by == WLB_ENDED_BY_ITSELF && attempt->srun_signal == 0 && !attempt->no_step && !is_broken &&
	    wlb_ended_tasks_has_other(&scan->ended))
		attempt->exit_code = 0;
}

void wlb_attempt_end_find(const struct wlb_run *run, struct wlb_attempt *attempt,
                          const struct wlb_attempt_end_facts *facts)
{
	attempt->no_step = facts->scan->no_step && attempt->exit_code != 0 && attempt->ended_by == WLB_ENDED_BY_ITSELF;
	attempt->is_slurmctld_unavailable = attempt->no_step && facts->scan->is_slurmctld_unavailable;
	note_survivors(attempt, facts);
	note_fence_timeout(attempt, facts);
	note_launch_failure(attempt, facts);
	note_refusal(run, attempt, facts);
	note_first_exit(attempt, facts);
}

void wlb_attempt_end_explain(struct wlb_attempt *attempt, const struct wlb_attempt_end_facts *facts)
{
	note_slurm_end(attempt, facts);
	note_last_error(attempt, facts);
}

void wlb_attempt_error_put(const struct wlb_attempt *attempt, json_t *object)
{
	const struct wlb_error_line *error = &attempt->error;
	if (!error->known || error->text[0] == '\0')
		return;
	json_t *found = json_pack("{s:o, s:o, s:b}", "text", wlb_json_text(error->text), "cause",
	                          wlb_json_text(error->cause), "is_consequence", error->is_consequence);
	if (error->rank >= 0)
		json_object_set_new(found, "rank", json_integer(error->rank));
	json_object_set_new(object, "error", found);
}

void wlb_attempt_end_put(const struct wlb_run *run, const struct wlb_attempt *attempt, json_t *object)
{
	const struct wlb_first_exit *first = &attempt->first_exit;
	if (first->known)
		json_object_set_new(object, "first_exit",
		                    json_pack("{s:i, s:o, s:i}", "rank", first->rank, "node",
		                              wlb_json_text(first->node), first->signal != 0 ? "signal" : "exit_code",
		                              first->signal != 0 ? first->signal : first->exit_code));
	const struct wlb_run_launch_failure *failure = &attempt->launch_failure;
	if (failure->node[0] != '\0')
		json_object_set_new(object, "launch_failure",
		                    json_pack("{s:o, s:o, s:f}", "node", wlb_json_text(failure->node), "why",
		                              wlb_json_text(failure->why), "time", failure->time_s));
	/* A job that is over ends its steps: that is no fault. */
	if (attempt->slurm_end.why[0] != '\0' && !run->cancelled)
		json_object_set_new(object, "slurm_end",
		                    json_pack("{s:o, s:f, s:b}", "why", wlb_json_text(attempt->slurm_end.why), "time",
		                              attempt->slurm_end.time_s, "certain", attempt->slurm_end.is_certain));
	if (attempt->srun_signal != 0)
		json_object_set_new(object, "srun_signal", json_integer(attempt->srun_signal));
}
