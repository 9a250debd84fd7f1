#include "coordinator/wlbd/jobs/jobs.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/incident/faults.h"
#include "coordinator/wlbd/incident/requeued.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/jobs/drained_nodes.h"
#include "coordinator/wlbd/jobs/ended_jobs.h"
#include "coordinator/wlbd/jobs/job_record.h"
#include "coordinator/wlbd/jobs/scriptless_jobs.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/nodes/dead_node.h"
#include "coordinator/wlbd/nodes/lost_nodes.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/rules/job_end.h"
#include "coordinator/wlbd/rules/job_range.h"
#include "coordinator/wlbd/slurm/job_orders.h"
#include "coordinator/wlbd/slurm/job_poll.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

/* A pending job that Slurm is asked to resize. */
struct resize {
	TAILQ_ENTRY(resize) link;
	struct wlbd_jobs *jobs;
	json_int_t run_pk;
	json_int_t attempt_pk;
	uid_t uid;
	uint32_t job_id;
	uint32_t least_nodes;
	char detail[128];
};

struct wlbd_jobs {
	struct wlbd *wlbd;
	struct wlbd_ended_jobs *ended;
	struct wlbd_drained_nodes *drained;
	int due; /* answers that a poll waits for */
	TAILQ_HEAD(, resize) resizes;
};

/* One open run, from the answer of the database to the answer of Slurm. */
struct open_run {
	struct wlbd_jobs *jobs;
	struct open_run *next; /* of the same job */
	json_int_t run_pk;
	char run[WLBD_RUN_NAME_SIZE];
	uint32_t job_id;
	int64_t asked_ms; /* when Slurm was asked for it, of wlb_clock_ms() */
	int min_nodes;
	int total_nodes; /* nodes of the last attempt, spares included, and the lost nodes that it began without */
	int lost_nodes; /* nodes of the last attempt that wlbd found lost, or that are dead (dead_node.h), whichever are
	                   more; and dead nodes that earlier attempts lost */
	int resized_to; /* the least nodes that its job was given since the last attempt; 0: it was not resized */
	bool confirmed; /* Slurm has confirmed that the job belongs to the run's owner */
	uid_t uid;
	json_int_t attempt_pk; /* of the last attempt; 0: there is none */
	bool launched;         /* this and the following: as in job_end.h, from the database */
	bool complete;
	bool end_reported;
	bool launcher_lost;
	bool not_reached;
	json_t *lost_lately; /* names of nodes that its last attempt lost minutes ago at most, and that were its job's
	                      */
	struct wlbd_job_clock clock;
	time_t ended_at; /* this and the following: the job is requeued */
	char why[256];
};

static void open_run_free(struct open_run *open)
{
	json_decref(open->lost_lately);
	free(open);
}

static void count_answer(struct wlbd_jobs *jobs)
{
	if (--jobs->due == 0)
		wlbd_job_poll_done(jobs->wlbd->job_poll);
}

/* ---- one run ------------------------------------------------------------------------------------- */

static void end_attempts(const struct open_run *open)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &open->jobs->wlbd->attempts->list, link)
	if (attempt->run_pk == open->run_pk)
		wlbd_symptom_step_ended(attempt, WLBD_EXIT_UNKNOWN, NULL);
}

/* `ended_at`: of the job, as Slurm says; 0: not known. */
static void close_run(const struct open_run *open, const char *state, const char *reason, time_t ended_at)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, open->run_pk);
	wlbd_params_add_text(&params, state);
	wlbd_params_add_text(&params, strcmp(state, "complete") == 0 ? "" : reason);
	wlbd_params_add_integer_if(&params, ended_at != 0, ended_at);
	wlbd_log(WLBD_LOG_INFO, "run %s: %s: %s", open->run, state, reason);
	wlbd_outbox_put(open->jobs->wlbd->outbox, open->uid, open->run_pk,
	                "select wlb_run_end($1, $2, $3, 'slurm', to_timestamp($4::float8))", &params);
	end_attempts(open);
}

/* What wlbd knows and the database has not stored, because it did not answer. */
static void add_facts_in_memory(const struct open_run *open, struct wlbd_job_end_facts *facts)
{
	const struct wlbd_attempt *attempt;
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(attempt, &open->jobs->wlbd->attempts->list, link)
	{
		if (attempt->attempt_pk != open->attempt_pk)
			continue;
		facts->complete = facts->complete || (wlbd_attempt_end_is_known(&attempt->incident.life) &&
		                                      attempt->incident.life.exit_code == 0);
		TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
		facts->goodbye = facts->goodbye || (reporter->rank == WLBD_LAUNCHER && reporter->goodbye);
	}
}

static void record_killed(const struct open_run *open, const struct wlb_slurm_job *job, const struct wlbd_job_end *end)
{
	char detail[128];
	if (end->script_lost) {
		snprintf(detail, sizeof(detail), "the script of job %u was killed by signal %d", job->job_id,
		         job->exit_signal);
		wlbd_fault_record_killed(open->jobs->wlbd, open->uid, open->run_pk, open->attempt_pk,
		                         WLB_FAULT_SCRIPT_LOST, job->batch_host, detail, (double)job->end_time);
	} else if (end->launcher_lost) {
		snprintf(detail, sizeof(detail), "job %u is over, and wlb run did not report how the run ended",
		         job->job_id);
		wlbd_fault_record_killed(open->jobs->wlbd, open->uid, open->run_pk, open->attempt_pk,
		                         WLB_FAULT_LAUNCHER_LOST, job->batch_host, detail, 0);
	}
}

static void on_requeued(void *context, const char *failure)
{
	struct open_run *open = context;
	struct wlbd_params params = {0};
	if (failure != NULL) {
		wlbd_params_add_integer(&params, open->run_pk);
		wlbd_params_add_integer(&params, open->attempt_pk);
		wlbd_params_add_text(&params, failure);
		wlbd_outbox_put(open->jobs->wlbd->outbox, open->uid, open->run_pk,
		                "select wlb_run_not_requeued($1, $2, $3)", &params);
	}
	free(open);
}

static void on_requeue_allowed(void *context, const struct wlbd_db_result *result)
{
	struct open_run *open = context;
	int time = result->status == WLBD_DB_OK && result->value != NULL ? atoi(result->value) : -1;
	char reason[512];
	if (time > 0) {
		wlbd_log(WLBD_LOG_WARNING, "run %s: %s; its job is requeued, %d of at most %d times", open->run,
		         open->why, time, WLBD_REQUEUES_MAX);
		end_attempts(open);
		wlbd_job_orders_give(open->jobs->wlbd, WLBD_JOB_REQUEUE, open->job_id, open->why, on_requeued, open);
		return;
	}
	if (time == 0) {
		snprintf(reason, sizeof(reason),
		         "job %u is not requeued: it was requeued %d times, the maximum of a run; submit it again",
		         open->job_id, WLBD_REQUEUES_MAX);
		close_run(open, "failed", reason, open->ended_at);
	}
	free(open);
}

/* The requeue is counted before Slurm gets the order: so the count is never too low, even if wlbd dies in between. It
 * is taken back where Slurm does not do it. */
static void requeue(const struct open_run *from, const struct wlbd_job_end *end, time_t ended_at)
{
	struct wlbd_params params = {0};
	struct open_run *open = malloc(sizeof(*open));
	if (open == NULL)
		return; /* the next poll finds the same */
	*open = *from;
	open->lost_lately = NULL;
	open->ended_at = ended_at;
	wlb_text_format(open->why, sizeof(open->why), "%s", end->reason);
	wlbd_params_add_integer(&params, open->run_pk);
	wlbd_params_add_integer(&params, open->attempt_pk);
	wlbd_params_add_text(&params, open->why);
	wlbd_params_add_integer(&params, WLBD_REQUEUES_MAX);
	wlbd_params_add_integer_if(&params, ended_at != 0, ended_at);
	wlbd_job_poll_soon(open->jobs->wlbd->job_poll, open->job_id, true);
	wlbd_db_execute(open->jobs->wlbd->writes,
	                "select wlb_run_requeue($1, $2, $3, $4::integer, to_timestamp($5::float8))", &params,
	                on_requeue_allowed, open);
}

static int64_t ended_ago_s(const struct open_run *open, const struct wlb_slurm_job *job)
{
	if (job == NULL)
		return 0;
	return wlbd_ended_jobs_ago_s(open->jobs->ended, open->job_id, job->end_time, wlb_clock_ms(),
	                             wlb_clock_unix_s());
}

static void handle_ended_job(const struct open_run *open, const struct wlb_slurm_job *job)
{
	struct wlbd *wlbd = open->jobs->wlbd;
	struct wlbd_job_end end;
	struct wlbd_job_end_facts facts = {
		.job = job,
		.job_id = open->job_id,
		.ended_ago_s = ended_ago_s(open, job),
		.recording_s = wlbd->database_was_up ? (wlb_clock_ms() - wlbd->recording_since_ms) / 1000 : 0,
		.may_requeue = job != NULL && job->requeue && job->batch,
		.has_attempt = open->attempt_pk != 0,
		.launched = open->launched,
		.complete = open->complete,
		.end_reported = open->end_reported,
		.launcher_lost = open->launcher_lost,
		.not_reached = open->not_reached,
	};
	add_facts_in_memory(open, &facts);
	wlbd_job_end_judge(&facts, &end);
	/* What wlbd found out is stored before what is decided from it. */
	if (end.verb == WLBD_JOB_END_WAIT || wlbd_outbox_holds(wlbd->outbox, open->run_pk)) {
		wlbd_job_poll_soon(open->jobs->wlbd->job_poll, open->job_id, false);
		return;
	}
	time_t ended_at = job != NULL ? job->end_time : 0;
	if (job != NULL)
		record_killed(open, job, &end);
	if (end.verb == WLBD_JOB_END_REQUEUE)
		requeue(open, &end, ended_at);
	else
		close_run(open, end.state, end.reason, ended_at);
}

static bool is_being_resized(const struct wlbd_jobs *jobs, uint32_t job_id)
{
	const struct resize *resize;
	TAILQ_FOREACH(resize, &jobs->resizes, link)
	if (resize->job_id == job_id)
		return true;
	return false;
}

/* Only what Slurm has done is recorded: of a job that was just requeued it may refuse a change for some time, and the
 * next poll then asks again. */
static void on_resized(void *context, const char *failure)
{
	struct resize *resize = context;
	struct wlbd_params params = {0};
	TAILQ_REMOVE(&resize->jobs->resizes, resize, link);
	if (failure == NULL) {
		wlbd_params_add_integer(&params, resize->run_pk);
		wlbd_params_add_integer(&params, resize->attempt_pk);
		wlbd_params_add_integer(&params, resize->least_nodes);
		wlbd_params_add_text(&params, resize->detail);
		wlbd_params_add_seconds(&params, wlb_clock_unix_s());
		wlbd_outbox_put(resize->jobs->wlbd->outbox, resize->uid, resize->run_pk,
		                "select wlb_job_resized($1, $2, $3::integer, $4, to_timestamp($5::float8))", &params);
	}
	free(resize);
}

/* How many it gets at most stays as its user requested. */
static void resize_pending(struct open_run *open, const struct wlb_slurm_job *job)
{
	const struct wlbd_job_range_facts facts = {.total_nodes = open->total_nodes,
	                                           .lost_nodes = open->lost_nodes,
	                                           .min_nodes = open->min_nodes,
	                                           .resized_to = open->resized_to};
	uint32_t least = wlbd_job_least_nodes(job, &facts);
	if (least == 0 || is_being_resized(open->jobs, open->job_id) ||
	    wlbd_outbox_holds(open->jobs->wlbd->outbox, open->run_pk)) /* the event of the last time */
		return;
	struct resize *resize = malloc(sizeof(*resize));
	if (resize == NULL)
		return; /* the next poll finds the same */
	*resize = (struct resize){.jobs = open->jobs,
	                          .run_pk = open->run_pk,
	                          .attempt_pk = open->attempt_pk,
	                          .uid = open->uid,
	                          .job_id = open->job_id,
	                          .least_nodes = least};
	snprintf(resize->detail, sizeof(resize->detail), "job %u was requeued and may start on %u to %d nodes",
	         open->job_id, least, open->total_nodes);
	TAILQ_INSERT_TAIL(&open->jobs->resizes, resize, link);
	wlbd_slurm_resize(open->jobs->wlbd, open->job_id, least, on_resized, resize);
}

/* A wlbd that was started again does not know which nodes are to be set DOWN. Where nobody sets them DOWN, the job
 * waits in the queue until Slurm itself finds them lost. */
static void watch_lost_nodes(const struct open_run *open)
{
	struct wlbd *wlbd = open->jobs->wlbd;
	size_t i;
	const json_t *name;
	json_array_foreach(open->lost_lately, i, name)
	{
		const char *text = json_string_value(name);
		const struct wlbd_node *node = text != NULL ? wlbd_nodes_find(wlbd->nodes, text) : NULL;
		const struct wlbd_lost_node lost = {.name = text,
		                                    .run = open->run,
		                                    .job_id = open->job_id,
		                                    .uid = open->uid,
		                                    .node_confirmed = true};
		if (node != NULL && !node->down && !node->saves_power)
			wlbd_lost_nodes_add_stored(wlbd->lost_nodes, &lost);
	}
}

static void handle_queued_job(struct open_run *open, const struct wlb_slurm_job *job)
{
	watch_lost_nodes(open);
	resize_pending(open, job);
}

/* Where Slurm does not requeue it, the run ends with it; scriptless_jobs.h ends the job where this order fails. */
static void replace_script(const struct open_run *open, const struct wlb_slurm_job *job)
{
	struct wlbd *wlbd = open->jobs->wlbd;
	char reason[512];
	if (job->requeue) {
		wlbd_job_orders_give(wlbd, WLBD_JOB_REQUEUE, open->job_id, "the node of its script is down", NULL,
		                     NULL);
		return;
	}
	snprintf(reason, sizeof(reason),
	         "node %s is lost, on which the script of job %u ran; it was submitted without --requeue",
	         job->batch_host, open->job_id);
	wlbd_job_orders_give(wlbd, WLBD_JOB_KILL, open->job_id, reason, NULL, NULL);
	close_run(open, "failed", reason, time(NULL));
}

static bool is_over(const struct open_run *open, const struct wlbd_job_facts *facts)
{
	return (facts->found == 0 || (facts->found == 1 && facts->job.finished)) &&
	       !wlbd_attempts_run_reports(open->jobs->wlbd->attempts, open->run_pk, wlb_clock_ms());
}

/* A user announced the job of another user while Slurm did not answer. */
static void close_foreign(struct open_run *open, const struct wlbd_job_facts *facts)
{
	char reason[384];
	wlb_text_format(reason, sizeof(reason), "job %u belongs to %s, as Slurm reports", open->job_id, facts->user);
	close_run(open, "failed", reason, time(NULL));
}

static void evaluate(struct open_run *open, const struct wlbd_job_facts *facts)
{
	struct wlbd *wlbd = open->jobs->wlbd;
	if (facts->found == 1 && facts->job.uid != open->uid) {
		close_foreign(open, facts);
		return;
	}
	if (facts->found == 1)
		wlbd_attempts_confirm(wlbd, open->run_pk, &facts->job);
	else if (facts->found == 0)
		wlbd_attempts_job_unknown(wlbd, open->run_pk);
	if (facts->found == 1 && !open->confirmed)
		wlbd_run_confirm(wlbd, open->run_pk, &facts->job);
	if (wlbd_job_orders_has(wlbd->job_orders, open->job_id))
		return; /* the next poll sees what became of it */
	if (facts->found == 1) {
		wlbd_requeued_note(wlbd, open->run_pk, &facts->job, open->asked_ms);
		wlbd_job_clock_note(wlbd, &open->clock, &facts->job);
	}
	if (facts->found == 1 && strcmp(facts->job.state, "PENDING") == 0)
		handle_queued_job(open, &facts->job);
	else if (facts->found == 1 && wlbd_job_has_no_script(wlbd, &facts->job))
		replace_script(open, &facts->job);
	else if (is_over(open, facts))
		handle_ended_job(open, facts->found == 1 ? &facts->job : NULL);
}

/* `context`: the oldest open run of the job. */
static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct open_run *open = context;
	struct wlbd_jobs *jobs = open->jobs;
	while (open != NULL) {
		struct open_run *next = open->next;
		if (!jobs->wlbd->stopping)
			evaluate(open, facts);
		open_run_free(open);
		open = next;
	}
	count_answer(jobs);
}

/* ---- all runs ----------------------------------------------------------------------------------- */

static bool is_among(json_int_t pk, const json_t *list)
{
	size_t i;
	json_t *entry;
	json_array_foreach((json_t *)list, i, entry) if (json_integer_value(entry) == pk) return true;
	return false;
}

/* Slurm may set a node DOWN after the attempt on it has ended, or never. Only the nodes of a job that waits for them
 * are probed. */
static int count_dead_nodes(const struct open_run *open, const json_t *names)
{
	struct wlbd *wlbd = open->jobs->wlbd;
	size_t i;
	const json_t *name;
	int dead = 0;
	json_array_foreach((json_t *)names, i, name)
	{
		const char *text = json_string_value(name);
		const struct wlbd_node *node = text != NULL ? wlbd_nodes_find(wlbd->nodes, text) : NULL;
		dead += node != NULL && !node->saves_power &&
		        (node->down ||
		         (open->clock.is_waiting && wlbd_node_is_dead(wlbd, node, open->job_id, open->uid)));
	}
	return dead;
}

/* Whether the job of the run is looked at in this poll. */
static bool is_due(const struct wlbd_jobs *jobs, const json_t *row)
{
	return wlbd_job_poll_has(jobs->wlbd->job_poll, (uint32_t)json_integer_value(json_object_get(row, "job_id")));
}

static struct open_run *open_run_from(struct wlbd_jobs *jobs, const json_t *row)
{
	struct open_run *open = calloc(1, sizeof(*open));
	const char *run;
	json_int_t job_id, uid;
	if (open == NULL || json_unpack((json_t *)row, "{s:I, s:s, s:I, s:I, s:i, s:i, s:i}", "run_pk", &open->run_pk,
	                                "run", &run, "job_id", &job_id, "uid", &uid, "min_nodes", &open->min_nodes,
	                                "total_nodes", &open->total_nodes, "lost_nodes", &open->lost_nodes) != 0) {
		free(open);
		return NULL;
	}
	open->jobs = jobs;
	snprintf(open->run, sizeof(open->run), "%s", run);
	open->job_id = (uint32_t)job_id;
	open->uid = (uid_t)uid;
	open->attempt_pk = json_integer_value(json_object_get(row, "attempt_pk"));
	open->resized_to = (int)json_integer_value(json_object_get(row, "resized_to"));
	open->clock = (struct wlbd_job_clock){
		.run_pk = open->run_pk,
		.restart_count = (uint32_t)json_integer_value(json_object_get(row, "restart_count")),
		.is_waiting = json_is_true(json_object_get(row, "is_waiting")),
		.is_suspended = json_is_true(json_object_get(row, "is_suspended")),
	};
	int dead = count_dead_nodes(open, json_object_get(row, "node_names"));
	if (dead > open->lost_nodes)
		open->lost_nodes = dead;
	/* Nodes of the job that are still lost, though the newest attempt began without them. */
	int lost_before = count_dead_nodes(open, json_object_get(row, "lost_before"));
	open->total_nodes += lost_before;
	open->lost_nodes += lost_before;
	open->lost_lately = json_incref(json_object_get(row, "lost_lately"));
	open->launched = json_is_true(json_object_get(row, "launched"));
	open->complete = json_is_true(json_object_get(row, "complete"));
	open->end_reported = json_is_true(json_object_get(row, "end_reported"));
	open->launcher_lost = json_is_true(json_object_get(row, "launcher_lost"));
	open->not_reached = json_is_true(json_object_get(row, "not_reached"));
	return open;
}

static void count_scriptless_job(void *context)
{
	count_answer(context);
}

static void check_scriptless_jobs(struct wlbd_jobs *jobs, const json_t *rows)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		if (!is_due(jobs, json_array_get(rows, i)))
			continue;
		jobs->due++;
		wlbd_scriptless_job_check(jobs->wlbd, json_array_get(rows, i), count_scriptless_job, jobs);
	}
}

static int by_job(const void *a, const void *b)
{
	const struct open_run *x = *(struct open_run *const *)a;
	const struct open_run *y = *(struct open_run *const *)b;
	if (x->job_id != y->job_id)
		return x->job_id > y->job_id ? 1 : -1;
	return (x->run_pk > y->run_pk) - (x->run_pk < y->run_pk);
}

/* Slurm is asked once for each job, of which users can make many runs. */
static void ask_for_jobs(struct wlbd_jobs *jobs, struct open_run **runs, size_t count)
{
	qsort(runs, count, sizeof(struct open_run *), by_job);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && runs[end]->job_id == runs[first]->job_id; end++)
			runs[end - 1]->next = runs[end];
		int64_t now_ms = wlb_clock_ms();
		for (size_t i = first; i < end; i++)
			runs[i]->asked_ms = now_ms;
		jobs->due++;
		wlbd_slurm_job_poll(jobs->wlbd, runs[first]->job_id, on_job, runs[first]);
	}
}

static void look_at_runs(struct wlbd_jobs *jobs, const json_t *rows, const json_t *provisional)
{
	struct open_run **runs = calloc(json_array_size(rows) + 1, sizeof(struct open_run *));
	size_t count = 0;
	for (size_t i = 0; runs != NULL && i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		struct open_run *open = is_due(jobs, row) ? open_run_from(jobs, row) : NULL;
		if (open == NULL)
			continue;
		open->confirmed = !is_among(open->run_pk, provisional);
		runs[count++] = open;
	}
	if (runs != NULL)
		ask_for_jobs(jobs, runs, count);
	free(runs);
}

static void on_open_runs(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_jobs *jobs = context;
	if (result->status != WLBD_DB_OK && wlbd_db_ready(jobs->wlbd->polls)) /* a lost connection was logged */
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_DATABASE,
		                 "open runs cannot be read, and none is ended or requeued until the next poll: %s",
		                 result->detail);
	json_t *answer = result->status == WLBD_DB_OK ? json_loads(result->value, 0, NULL) : NULL;
	look_at_runs(jobs, json_object_get(answer, "open"), json_object_get(answer, "provisional"));
	check_scriptless_jobs(jobs, json_object_get(answer, "left"));
	json_decref(answer);
	count_answer(jobs);
}

/* Slurm may find a node lost from which no process reports to wlbd. */
static void suspect_down_nodes(struct wlbd *wlbd)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	{
		const struct wlbd_names *names = &attempt->nodes.started_on;
		if (wlbd_attempt_has_ended(&attempt->incident.life) || attempt->incident.settled)
			continue;
		for (int i = 0; i < names->count; i++) {
			const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, names->list[i]);
			if (node != NULL && (node->down || !node->responds))
				wlbd_symptom_node_silent(attempt, node->name);
		}
	}
}

static void ask_for_runs(struct wlbd_jobs *jobs)
{
	static const struct wlbd_params none;
	wlbd_db_execute(
		jobs->wlbd->polls,
		"select json_build_object('open', wlb_runs_open(), 'provisional', wlb_runs_provisional(), 'left', "
		"wlb_runs_left())",
		&none, on_open_runs, jobs);
}

static void on_nodes(void *context, const struct wlb_error *error)
{
	struct wlbd_jobs *jobs = context;
	if (jobs->wlbd->stopping)
		return;
	if (error == NULL) {
		suspect_down_nodes(jobs->wlbd);
		wlbd_drained_nodes_note(jobs->drained);
	}
	ask_for_runs(jobs);
}

static void poll(void *context)
{
	struct wlbd_jobs *jobs = context;
	jobs->due = 1; /* the list of open runs */
	wlbd_slurm_ping(jobs->wlbd);
	if (wlbd_job_poll_has_nodes(jobs->wlbd->job_poll))
		wlbd_nodes_refresh(jobs->wlbd, 0, on_nodes, jobs);
	else
		ask_for_runs(jobs);
}

struct wlbd_jobs *wlbd_jobs_new(struct wlbd *wlbd)
{
	struct wlbd_jobs *jobs = calloc(1, sizeof(*jobs));
	if (jobs == NULL)
		return NULL;
	jobs->wlbd = wlbd;
	TAILQ_INIT(&jobs->resizes);
	jobs->ended = wlbd_ended_jobs_new();
	jobs->drained = wlbd_drained_nodes_new(wlbd);
	if (jobs->ended != NULL && jobs->drained != NULL)
		wlbd->job_poll = wlbd_job_poll_new(wlbd->base, wlbd->config.job_poll_ms, poll, jobs);
	if (wlbd->job_poll == NULL) {
		wlbd_ended_jobs_free(jobs->ended);
		wlbd_drained_nodes_free(jobs->drained);
		free(jobs);
		return NULL;
	}
	return jobs;
}

void wlbd_jobs_free(struct wlbd_jobs *jobs)
{
	if (jobs == NULL)
		return;
	wlbd_job_poll_free(jobs->wlbd->job_poll);
	wlbd_ended_jobs_free(jobs->ended);
	wlbd_drained_nodes_free(jobs->drained);
	free(jobs);
}
