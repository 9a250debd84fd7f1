#include "coordinator/wlbd/slurm/jobs.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/liveness/attempts.h"
#include "coordinator/wlbd/liveness/verdict.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/requests/find_attempt.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/rules/job_end.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/slurm_ask.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	HURRY_MS = 1000,
	HURRY_FOR_MS = 30000,
};

struct wlbd_jobs {
	struct wlbd *wlbd;
	struct event *timer;
	int64_t hurry_until_ms;
	int asked; /* answers still due */
};

/* One open run, between the question to the database and the answer of Slurm. */
struct open_run {
	struct wlbd_jobs *jobs;
	json_int_t run_pk;
	char run[WLBD_RUN_NAME_SIZE];
	uint32_t job_id;
	int min_nodes;
	int total_nodes; /* of the last attempt, spares included */
	int lost_nodes;  /* of the last attempt's: found lost by wlbd, or DOWN in Slurm now, whichever are more */
	int resized_to;  /* the least nodes that its job was given since the last attempt; 0: it was not resized */
	bool confirmed;  /* Slurm has said that the job is of the run's owner */
	uid_t uid;
	json_int_t attempt_pk; /* of the last attempt; 0: there is none */
	bool launched;         /* this and the following as in job_end.h, by the database's word */
	bool complete;
	bool told;
	bool launcher_lost;
	char why[256]; /* it is queued again */
};

static void set_timer(struct wlbd_jobs *jobs)
{
	int ms = wlb_clock_ms() < jobs->hurry_until_ms ? HURRY_MS : jobs->wlbd->config.job_poll_ms;
	struct timeval after = {ms / 1000, ms % 1000 * 1000};
	event_add(jobs->timer, &after);
}

static void answered(struct wlbd_jobs *jobs)
{
	if (--jobs->asked == 0)
		set_timer(jobs);
}

/* ---- one run ------------------------------------------------------------------------------------- */

static bool shows_life(struct wlbd *wlbd, json_int_t run_pk)
{
	struct wlbd_attempt *attempt;
	struct wlbd_reporter *reporter;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	{
		if (attempt->run_pk != run_pk)
			continue;
		TAILQ_FOREACH(reporter, &attempt->reporters, link)
		if (reporter->connection != NULL)
			return true;
	}
	return false;
}

static void attempts_over(const struct open_run *open)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &open->jobs->wlbd->attempts->list, link)
	if (attempt->run_pk == open->run_pk)
		wlbd_verdict_over(attempt, WLBD_EXIT_UNKNOWN, NULL);
}

static void close_run(const struct open_run *open, const char *state, const char *reason)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, open->run_pk);
	wlbd_params_add_text(&params, state);
	wlbd_params_add_text(&params, strcmp(state, "complete") == 0 ? "" : reason);
	wlbd_log(WLBD_LOG_INFO, "run %s: %s: %s", open->run, state, reason);
	wlbd_outbox_put(open->jobs->wlbd->outbox, open->run_pk, "select wlb_run_end($1, $2, $3, 'slurm')", &params);
	attempts_over(open);
}

/* What wlbd has heard and the database has not stored, since it was away. */
static void add_what_is_in_memory(const struct open_run *open, struct wlbd_job_end_facts *facts)
{
	const struct wlbd_attempt *attempt;
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(attempt, &open->jobs->wlbd->attempts->list, link)
	{
		if (attempt->attempt_pk != open->attempt_pk)
			continue;
		facts->complete = facts->complete || (attempt->incident.over && attempt->incident.exit_code == 0);
		TAILQ_FOREACH(reporter, &attempt->reporters, link)
		facts->goodbye = facts->goodbye || (reporter->rank == WLBD_LAUNCHER && reporter->goodbye);
	}
}

static void record_killed(const struct open_run *open, const struct wlb_slurm_job *job, const struct wlbd_job_end *end)
{
	char detail[128];
	if (end->script_lost) {
		snprintf(detail, sizeof(detail), "the script of job %u was killed by signal %d", job->job_id,
		         job->exit_signal);
		wlbd_verdict_job_killed(open->jobs->wlbd, open->run_pk, open->attempt_pk, "script_lost",
		                        job->batch_host, detail, (double)job->end_time);
	} else if (end->launcher_lost) {
		snprintf(detail, sizeof(detail), "job %u is over, and wlb run did not say how the run ended",
		         job->job_id);
		wlbd_verdict_job_killed(open->jobs->wlbd, open->run_pk, open->attempt_pk, "launcher_lost",
		                        job->batch_host, detail, 0);
	}
}

static void on_requeue_allowed(void *context, const struct wlbd_db_result *result)
{
	struct open_run *open = context;
	int time = result->status == WLBD_DB_OK && result->value != NULL ? atoi(result->value) : -1;
	char reason[512];
	if (time > 0) {
		wlbd_log(WLBD_LOG_WARNING, "run %s: %s; its job is queued again, %d of at most %d times", open->run,
		         open->why, time, WLBD_REQUEUES_MOST);
		attempts_over(open);
		wlbd_slurm_requeue(open->jobs->wlbd, open->job_id, open->why);
	} else if (time == 0) {
		snprintf(reason, sizeof(reason), "job %u is not queued again: it was %d times", open->job_id,
		         WLBD_REQUEUES_MOST);
		close_run(open, "failed", reason);
	}
	free(open);
}

/* The count is stored first: it is right whatever happens to wlbd in between. */
static void requeue(const struct open_run *from, const struct wlbd_job_end *end)
{
	struct wlbd_params params = {0};
	struct open_run *open = malloc(sizeof(*open));
	if (open == NULL)
		return; /* the next look finds the same */
	*open = *from;
	snprintf(open->why, sizeof(open->why), "%s", end->reason);
	wlbd_params_add_integer(&params, open->run_pk);
	wlbd_params_add_integer(&params, open->attempt_pk);
	wlbd_params_add_text(&params, open->why);
	wlbd_params_add_integer(&params, WLBD_REQUEUES_MOST);
	wlbd_jobs_hurry(open->jobs);
	wlbd_db_call(open->jobs->wlbd->writes, "select wlb_run_requeue($1, $2, $3, $4::integer)", &params,
	             on_requeue_allowed, open);
}

static void see_to_ended_job(const struct open_run *open, const struct wlb_slurm_job *job)
{
	struct wlbd *wlbd = open->jobs->wlbd;
	struct wlbd_job_end end;
	struct wlbd_job_end_facts facts = {
		.job = job,
		.job_id = open->job_id,
		.ended_ago_s = job != NULL ? (int64_t)(wlb_clock_unix_s() - (double)job->end_time) : 0,
		.recording_s = wlbd->database_was_up ? (wlb_clock_ms() - wlbd->recording_since_ms) / 1000 : 0,
		.may_requeue = job != NULL && job->requeue && job->batch,
		.has_attempt = open->attempt_pk != 0,
		.launched = open->launched,
		.complete = open->complete,
		.told = open->told,
		.launcher_lost = open->launcher_lost,
	};
	add_what_is_in_memory(open, &facts);
	wlbd_job_end_judge(&facts, &end);
	/* What wlbd found out is stored before what follows from it. */
	if (end.verb == WLBD_JOB_END_WAIT || wlbd_outbox_holds(wlbd->outbox, open->run_pk)) {
		wlbd_jobs_hurry(open->jobs);
		return;
	}
	if (job != NULL)
		record_killed(open, job, &end);
	if (end.verb == WLBD_JOB_END_REQUEUE)
		requeue(open, &end);
	else
		close_run(open, end.state, end.reason);
}

/* A range, not a number: Slurm gives what it has, up to what the user asked for. */
static void fit_pending(struct open_run *open)
{
	struct wlbd_params params = {0};
	char detail[128];
	int left = open->total_nodes - open->lost_nodes;
	int least = open->min_nodes > left ? open->min_nodes : left;
	int before = open->resized_to > 0 ? open->resized_to : open->total_nodes;
	if (open->lost_nodes == 0 || least < 1 || least >= before)
		return;
	wlbd_slurm_resize(open->jobs->wlbd, open->job_id, (uint32_t)least, (uint32_t)open->total_nodes);
	snprintf(detail, sizeof(detail), "job %u was requeued and may start on %d to %d nodes", open->job_id, least,
	         open->total_nodes);
	wlbd_params_add_integer(&params, open->run_pk);
	wlbd_params_add_integer(&params, open->attempt_pk);
	wlbd_params_add_text(&params, detail);
	wlbd_params_add_seconds(&params, wlb_clock_unix_s());
	wlbd_outbox_put(open->jobs->wlbd->outbox, open->run_pk,
	                "select wlb_event_add($1, $2, 'job_resized', $3, to_timestamp($4::float8))", &params);
}

/* Slurm ends or requeues a job whose batch host goes DOWN; one submitted with --no-kill it keeps, and that stays
 * RUNNING with nobody to run it. The nodes were asked about before the job, so a job that Slurm takes care of is not
 * seen here. */
static bool has_no_script(struct wlbd *wlbd, const struct wlb_slurm_job *job)
{
	const struct wlbd_node *host = job->running ? wlbd_nodes_find(wlbd->nodes, job->batch_host) : NULL;
	return host != NULL && host->down;
}

static bool is_over(const struct open_run *open, const struct wlbd_job_facts *facts)
{
	return (facts->found == 0 || (facts->found == 1 && facts->job.finished)) &&
	       !shows_life(open->jobs->wlbd, open->run_pk);
}

/* Somebody announced a job that is not his, while Slurm could not say so. */
static void close_by_owner(struct open_run *open, const struct wlbd_job_facts *facts)
{
	char reason[384];
	snprintf(reason, sizeof(reason), "job %u belongs to %s, as Slurm says", open->job_id, facts->user);
	close_run(open, "failed", reason);
}

static void look_at(struct open_run *open, const struct wlbd_job_facts *facts)
{
	struct wlbd *wlbd = open->jobs->wlbd;
	if (facts->found == 1 && facts->job.uid != open->uid) {
		close_by_owner(open, facts);
		return;
	}
	if (facts->found == 1)
		wlbd_attempts_confirm(wlbd, open->run_pk, &facts->job);
	if (facts->found == 1 && !open->confirmed)
		wlbd_run_confirm(wlbd, open->run_pk, &facts->job);
	if (facts->found == 1 && strcmp(facts->job.state, "PENDING") == 0)
		fit_pending(open);
	else if (facts->found == 1 && has_no_script(wlbd, &facts->job))
		wlbd_slurm_requeue(wlbd, open->job_id, "the node of its script is down");
	else if (is_over(open, facts))
		see_to_ended_job(open, facts->found == 1 ? &facts->job : NULL);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct open_run *open = context;
	if (!open->jobs->wlbd->stopping)
		look_at(open, facts);
	answered(open->jobs);
	free(open);
}

/* ---- all of them ----------------------------------------------------------------------------------- */

static bool is_among(json_int_t pk, const json_t *list)
{
	size_t i;
	json_t *entry;
	json_array_foreach((json_t *)list, i, entry) if (json_integer_value(entry) == pk) return true;
	return false;
}

/* Slurm may set a node DOWN after the attempt on it has ended. */
static int count_down(const struct wlbd_nodes *nodes, const json_t *names)
{
	size_t i;
	const json_t *name;
	int down = 0;
	json_array_foreach((json_t *)names, i, name)
	{
		const char *text = json_string_value(name);
		const struct wlbd_node *node = text != NULL ? wlbd_nodes_find(nodes, text) : NULL;
		down += node != NULL && node->down;
	}
	return down;
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
	int down = count_down(jobs->wlbd->nodes, json_object_get(row, "node_names"));
	if (down > open->lost_nodes)
		open->lost_nodes = down;
	open->launched = json_is_true(json_object_get(row, "launched"));
	open->complete = json_is_true(json_object_get(row, "complete"));
	open->told = json_is_true(json_object_get(row, "told"));
	open->launcher_lost = json_is_true(json_object_get(row, "launcher_lost"));
	return open;
}

static void on_open_runs(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_jobs *jobs = context;
	json_t *answer = result->status == WLBD_DB_OK ? json_loads(result->value, 0, NULL) : NULL;
	const json_t *rows = json_object_get(answer, "open");
	const json_t *provisional = json_object_get(answer, "provisional");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		struct open_run *open = open_run_from(jobs, json_array_get(rows, i));
		if (open == NULL)
			continue;
		open->confirmed = !is_among(open->run_pk, provisional);
		jobs->asked++;
		wlbd_slurm_job(jobs->wlbd, open->job_id, 0, on_job, open);
	}
	json_decref(answer);
	answered(jobs);
}

/* Slurm may find a node lost of which nobody reports to wlbd. */
static void tell_of_down_nodes(struct wlbd *wlbd)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	{
		const struct wlbd_names *names = &attempt->nodes.started_on;
		for (int i = 0; i < names->count && !attempt->incident.over && !attempt->incident.settled; i++) {
			const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, names->list[i]);
			if (node != NULL && node->down)
				wlbd_verdict_node_dead(attempt, node->name);
		}
	}
}

static void on_nodes(void *context, const struct wlb_error *error)
{
	static const struct wlbd_params none;
	struct wlbd_jobs *jobs = context;
	if (jobs->wlbd->stopping)
		return;
	if (error == NULL)
		tell_of_down_nodes(jobs->wlbd);
	wlbd_db_call(jobs->wlbd->polls,
	             "select json_build_object('open', wlb_runs_open(), 'provisional', wlb_runs_provisional())", &none,
	             on_open_runs, jobs);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct wlbd_jobs *jobs = context;
	(void)fd;
	(void)what;
	jobs->asked = 1; /* ours, until each run's job was asked for */
	wlbd_slurm_find_out(jobs->wlbd);
	wlbd_nodes_refresh(jobs->wlbd, on_nodes, jobs);
}

struct wlbd_jobs *wlbd_jobs_new(struct wlbd *wlbd)
{
	struct wlbd_jobs *jobs = calloc(1, sizeof(*jobs));
	if (jobs == NULL)
		return NULL;
	jobs->wlbd = wlbd;
	jobs->timer = evtimer_new(wlbd->base, on_timer, jobs);
	set_timer(jobs);
	return jobs;
}

void wlbd_jobs_free(struct wlbd_jobs *jobs)
{
	if (jobs != NULL)
		event_free(jobs->timer);
	free(jobs);
}

void wlbd_jobs_hurry(struct wlbd_jobs *jobs)
{
	jobs->hurry_until_ms = wlb_clock_ms() + HURRY_FOR_MS;
	if (jobs->asked == 0)
		set_timer(jobs);
}
