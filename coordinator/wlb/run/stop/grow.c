#include "coordinator/wlb/run/stop/grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/slurm/supply.h"
#include "coordinator/wlb/run/command/command_words.h"
#include "coordinator/wlb/run/state/job.h"
#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/record.h"

enum {
	QUERY_MIN_MS = 1000,
	QUERY_MAX_MS = 30000,
	QUERIES_IN_WAIT = 10, /* as many within the least time of an attempt */
};

/* ---- what the option can do ------------------------------------------------------------------------------------- */

/* SIGUSR1 ends another trainer that does not expect it. */
static const char *why_no_effect(const struct wlb_run *run, bool will_continue)
{
	bool is_worker = wlb_run_train_word(run->options.command) >= 0;
	if (!is_worker && (!run->limit.is_given || run->limit.given_s == 0))
		return "the command must save and stop at SIGUSR1; where it does, say so by wlb run --stop-before-end "
		       "SECONDS";
	if (!will_continue)
		return "restarted, the command would begin at step 0; give wlb-worker the same directory in --save and "
		       "--load";
	return NULL;
}

static const char *why_no_requeue(const struct wlb_run *run)
{
	struct wlb_slurm_job job;
	int found = wlb_slurm_job(run->job.job_id, &job, NULL);
	wlb_slurm_job_free(&job);
	if (found != 1)
		return "Slurm does not say whether it requeues the job; look at scontrol ping";
	if (!job.batch)
		return "Slurm requeues only sbatch jobs; submit the job by sbatch";
	if (!job.requeue)
		return "the job was submitted without --requeue; submit it with --requeue";
	if (job.is_restricted)
		return "the job names nodes (--nodelist, --exclude), counts features or has a reservation; submit it "
		       "without these";
	return NULL;
}

void wlb_run_grow_open(struct wlb_run *run, bool will_continue)
{
	struct wlb_run_grow *grow = &run->grow;
	grow->least_s = json_integer_value(json_object_get(run->job.policy, "grow_s"));
	if (grow->least_s <= 0)
		return;
	const char *obstacle = why_no_effect(run, will_continue);
	if (obstacle != NULL) {
		wlb_run_print("--wlb-grow has no effect: %s", obstacle);
		return;
	}
	grow->is_on = true;
	grow->first_nodes = run->job.first_node_count;
	wlb_run_journal_read_growth(run);
	obstacle = why_no_requeue(run);
	grow->may_requeue = obstacle == NULL;
	if (obstacle != NULL)
		wlb_run_print("--wlb-grow does not replace nodes that Slurm takes from the job: %s", obstacle);
}

/* ---- an attempt begins ------------------------------------------------------------------------------------------ */

static void judge_growth(struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_run_grow *grow = &run->grow;
	int before = grow->nodes_before, now = attempt->node_count;
	size_t length = strlen(attempt->reason);
	grow->outcome[0] = '\0';
	if (before == 0)
		return;
	grow->growths_without_nodes = now > before ? 0 : grow->growths_without_nodes + 1;
	grow->nodes_before = 0;
	if (now > before)
		snprintf(grow->outcome, sizeof(grow->outcome), "the run has grown from %d to %d nodes", before, now);
	else
		snprintf(grow->outcome, sizeof(grow->outcome),
		         "the run has not grown: %d nodes, %d before; it is not stopped to grow for %" PRId64 " s", now,
		         before, wlb_grow_wait_s(grow->least_s, grow->growths_without_nodes));
	wlb_text_format(attempt->reason + length, sizeof(attempt->reason) - length, "%s%s", length > 0 ? "; " : "",
	                grow->outcome);
}

static void set_next_query(struct wlb_run_grow *grow, int64_t in_ms)
{
	grow->next_query_ms = wlb_clock_ms() + in_ms;
}

void wlb_run_grow_begin(struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_run_grow *grow = &run->grow;
	if (!grow->is_on)
		return;
	judge_growth(run, attempt);
	wlb_run_journal_write_growth(run);
	grow->used = attempt->node_count;
	grow->unused = attempt->unused_count;
	grow->way = WLB_GROW_NOT;
	int64_t wait_ms = 1000 * wlb_grow_wait_s(grow->least_s, grow->growths_without_nodes);
	grow->query_ms = wait_ms / QUERIES_IN_WAIT;
	if (grow->query_ms < QUERY_MIN_MS)
		grow->query_ms = QUERY_MIN_MS;
	if (grow->query_ms > QUERY_MAX_MS)
		grow->query_ms = QUERY_MAX_MS;
	set_next_query(grow, wait_ms);
}

void wlb_run_grow_record(struct wlb_run *run, struct wlb_reporter *reporter)
{
	if (run->grow.outcome[0] != '\0')
		wlb_run_record_event(reporter, "growth", run->grow.outcome);
}

/* ---- whether the run can grow ----------------------------------------------------------------------------------- */

static bool is_among(const char *name, char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Lists the nodes that the attempt excluded since they did not answer, and that are usable again. The names are the
 * attempt's. */
static int list_returned(const struct wlb_attempt *attempt, const struct wlb_slurm_supply *supply, char **returned)
{
	int count = 0;
	for (int i = 0; i < attempt->unresponsive_count; i++)
		if (is_among(attempt->unresponsive[i], supply->usable, supply->usable_count))
			returned[count++] = attempt->unresponsive[i];
	return count;
}

static int number_in_policy(const struct wlb_run *run, const char *key)
{
	return (int)json_integer_value(json_object_get(run->job.policy, key));
}

/* A requeue would end the other runs of the job, which lose what they have not saved. */
static bool may_requeue_now(struct wlb_run *run)
{
	struct wlb_run_grow *grow = &run->grow;
	if (!grow->may_requeue || !wlb_run_journal_others_work(run))
		return grow->may_requeue;
	if (!grow->are_others_printed)
		wlb_run_print("lost nodes are not replaced while another wlb run of this job works, since a requeue "
		              "would end it");
	grow->are_others_printed = true;
	return false;
}

static enum wlb_grow_way decide(struct wlb_run *run, const struct wlb_slurm_supply *supply, int returned)
{
	struct wlb_run_grow *grow = &run->grow;
	struct wlb_policy policy;
	if (wlb_policy_parse(json_string_value(json_object_get(run->job.policy, "layout")), &policy, NULL) != 0)
		return WLB_GROW_NOT;
	const struct wlb_grow_facts facts = {
		.policy = &policy,
		.ranks_per_node = run->job.tasks_per_node,
		.min_nodes = number_in_policy(run, "min_nodes"),
		.spares = number_in_policy(run, "spares"),
		.first_nodes = grow->first_nodes,
		.used = grow->used,
		.unused = grow->unused,
		.returned = returned,
		.allocated = run->job.node_count,
		.usable = supply->usable_count,
		.idle = supply->idle,
		.may_requeue = may_requeue_now(run),
	};
	return wlb_grow_decide(&facts, &grow->nodes);
}

static void say_why(struct wlb_run_grow *grow, char *const *returned, int count, int lost)
{
	if (grow->way == WLB_GROW_REQUEUE) {
		snprintf(grow->why, sizeof(grow->why), "%d lost node%s can be replaced", lost, lost == 1 ? "" : "s");
		return;
	}
	char *names = wlb_hostlist_fold(returned, count, NULL);
	snprintf(grow->why, sizeof(grow->why), "%.200s %s usable again", names != NULL ? names : returned[0],
	         count == 1 ? "is" : "are");
	free(names);
}

/* Returns -1 where Slurm does not answer, or the job does not run. */
static int ask_supply(uint32_t job_id, struct wlb_slurm_supply *supply)
{
	struct wlb_slurm_job job;
	bool runs = wlb_slurm_job(job_id, &job, NULL) == 1 && job.running;
	int rc = runs ? wlb_slurm_supply(&job, supply, NULL) : -1;
	wlb_slurm_job_free(&job);
	return rc;
}

/* Asks Slurm, and decides. Leaves run->grow as it is where Slurm does not answer. */
static enum wlb_grow_way ask_and_decide(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_run_grow *grow = &run->grow;
	struct wlb_slurm_supply supply;
	wlb_run_job_refresh(&run->job);
	if (ask_supply(run->job.job_id, &supply) != 0)
		return WLB_GROW_NOT;
	char **returned = calloc((size_t)attempt->unresponsive_count + 1, sizeof(*returned));
	int count = returned != NULL ? list_returned(attempt, &supply, returned) : 0;
	grow->way = decide(run, &supply, count);
	if (grow->way != WLB_GROW_NOT)
		say_why(grow, returned, count, grow->first_nodes - run->job.node_count);
	free(returned);
	wlb_slurm_supply_free(&supply);
	return grow->way;
}

/* A run that has all its nodes asks nothing. */
static bool may_grow(const struct wlb_run *run, const struct wlb_attempt *attempt)
{
	return attempt->unresponsive_count > 0 ||
	       (run->grow.may_requeue && run->job.node_count < run->grow.first_nodes);
}

bool wlb_run_grow_check(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_run_grow *grow = &run->grow;
	if (!grow->is_on || wlb_clock_left_ms(grow->next_query_ms) > 0)
		return false;
	set_next_query(grow, grow->query_ms);
	if (!may_grow(run, attempt) || ask_and_decide(run, attempt) == WLB_GROW_NOT)
		return false;
	grow->nodes_before = grow->used;
	wlb_run_journal_write_growth(run);
	return true;
}

bool wlb_run_grow_needs_requeue(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	if (!attempt->stopped || attempt->stop != WLB_RUN_STOP_GROW || run->grow.way != WLB_GROW_REQUEUE)
		return false;
	if (ask_and_decide(run, attempt) == WLB_GROW_REQUEUE)
		return true;
	wlb_run_print(
		"attempt %d: the nodes that would replace the lost ones are not idle any more, or another wlb run of "
		"this job has begun; the job is not requeued",
		attempt->number);
	return false;
}
