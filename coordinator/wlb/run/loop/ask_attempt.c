#include "coordinator/wlb/run/loop/ask_attempt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/exit_saved.h"
#include "common/json_text.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/run/attempt/attempt_end.h"
#include "coordinator/wlb/run/check/links.h"
#include "coordinator/wlb/run/plan/placement.h"
#include "coordinator/wlb/run/state/deliver_records.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/run_identity.h"
#include "coordinator/wlb/run/stop/signals.h"

enum {
	ASK_MS = 5000,
	AGAIN_MS = 1000,
	DELIVER_MS = 5000,  /* before each request: the records that the coordinator decides on should be stored */
	END_MIN_MS = 100,   /* for the run's end, however late it is */
	DECIDE_MIN_S = 300, /* for a decision of a coordinator that answers, however short one that is unavailable is
	                       waited for */
};

/* The coordinator names the run as it was counted, or as one that no other `wlb run` of this start of the job has. */
static void take_name(struct wlb_run *run, const char *name)
{
	const char *number = strchr(name, '.');
	int given = number != NULL ? atoi(number + 1) : 1;
	if (given > 0 && given != run->launch)
		wlb_run_identity_move(run, given);
	snprintf(run->id, sizeof(run->id), "%s", name);
}

/* Announces the run and stores its name; -1 if the coordinator does not answer (*status 0) or refuses. */
static int announce(struct wlb_run *run, int *status, struct wlb_error *error)
{
	const struct wlb_run_job *job = &run->job;
	const char *name = NULL;
	char *nodes = wlb_hostlist_fold(job->nodes, job->node_count, NULL);
	json_t *body =
		json_pack("{s:s, s:I, s:I, s:s, s:s, s:o*, s:i, s:s, s:O}", "run_id", run->id, "job_id",
	                  (json_int_t)job->job_id, "restart_count", (json_int_t)job->restart_count, "cluster",
	                  job->cluster, "job_name", job->name, "nodes", nodes != NULL ? wlb_json_text(nodes) : NULL,
	                  "launch", run->launch, "launcher", run->launcher_id, "policy", job->policy);
	free(nodes);
	json_t *reply = wlb_api_request(run->connection, "POST", "/v1/runs", body, ASK_MS, status, error);
	json_decref(body);
	if (reply == NULL)
		return -1;
	if (json_unpack(reply, "{s:s}", "run_id", &name) == 0 && strlen(name) < sizeof(run->id))
		take_name(run, name);
	json_decref(reply);
	run->announced = true;
	return 0;
}

static json_t *ask_body(const struct wlb_run *run, const struct wlb_attempt *previous,
                        const struct wlb_attempt *attempt)
{
	const struct wlb_run_job *job = &run->job;
	json_t *nodes = json_array();
	json_t *before = json_null();
	for (int i = 0; i < job->node_count; i++)
		json_array_append_new(nodes, wlb_json_text(job->nodes[i]));
	if (previous != NULL) {
		json_decref(before);
		/* Another trainer than wlb-worker may also end with 0 when it is asked to save and stop. */
		int exit_code = previous->stopped ? WLB_EXIT_SAVED : previous->exit_code;
		before = json_pack("{s:s, s:i, s:s}", "attempt_id", previous->id, "exit_code", exit_code, "step_id",
		                   previous->step_id);
		wlb_attempt_end_put(run, previous, before);
	}
	bool goes_on = run->options.on_rank_exit == WLB_ON_RANK_EXIT_CONTINUE;
	return json_pack("{s:s, s:I, s:o, s:i, s:i, s:O, s:o, s:{s:b}, s:s*}", "attempt_id", attempt->id, "job_id",
	                 (json_int_t)job->job_id, "nodes", nodes, "tasks_per_node", job->tasks_per_node,
	                 "gpus_per_node", job->gpus_per_node, "policy", job->policy, "previous", before, "links",
	                 "checked", 0, "on_rank_exit", goes_on ? "continue" : NULL);
}

static int read_nodes(const json_t *list, char ***names, int *name_count, struct wlb_error *error)
{
	size_t count = json_array_size(list);
	char **nodes = calloc(count + 1, sizeof(*nodes));
	if (nodes == NULL)
		return wlb_fail(error, "out of memory for %zu nodes", count);
	for (size_t i = 0; i < count; i++) {
		const char *name = json_string_value(json_array_get(list, i));
		if (name == NULL || (nodes[i] = strdup(name)) == NULL) {
			wlb_strings_free(nodes, (int)i);
			return wlb_fail(error, "the coordinator's reply names a node that is not text");
		}
	}
	*names = nodes;
	*name_count = (int)count;
	return 0;
}

static int read_start(const struct wlb_run *run, json_t *reply, struct wlb_attempt *attempt, struct wlb_error *error)
{
	json_t *nodes, *layout = NULL, *switches = NULL;
	const char *reason = NULL;
	json_error_t why;
	attempt->tasks_per_node = run->job.tasks_per_node;
	const json_t *checkpoint = json_object_get(reply, "checkpoint");
	const char *path = json_string_value(json_object_get(checkpoint, "path"));
	attempt->checkpoint_step = json_integer_value(json_object_get(checkpoint, "step"));
	attempt->checkpoint_path = path != NULL ? strdup(path) : NULL;
	if (json_unpack_ex(reply, &why, 0, "{s:i, s:o, s?i, s?o, s?s, s?o}", "attempt", &attempt->number, "nodes",
	                   &nodes, "tasks_per_node", &attempt->tasks_per_node, "layout", &layout, "reason", &reason,
	                   "switches", &switches) != 0)
		return wlb_fail(error, "the coordinator's reply is not understood: %s", why.text);
	if (json_array_size(nodes) == 0 || attempt->tasks_per_node < 1)
		return wlb_fail(error, "the coordinator's reply names no node or no task");
	struct wlb_layout *l = &attempt->layout;
	attempt->has_layout = json_unpack(layout, "{s:i, s:i, s:i, s:i}", "tp", &l->tp, "cp", &l->cp, "pp", &l->pp,
	                                  "dp", &l->dp) == 0;
	wlb_text_show(attempt->reason, sizeof(attempt->reason), reason != NULL ? reason : "");
	if (read_nodes(nodes, &attempt->nodes, &attempt->node_count, error) < 0 ||
	    read_nodes(json_object_get(reply, "missing"), &attempt->unresponsive, &attempt->unresponsive_count, error) <
	            0)
		return -1;
	attempt->unused_count = (int)json_array_size(json_object_get(reply, "spares"));
	wlb_run_read_switches(switches, attempt);
	attempt->gpu_types = json_incref(json_object_get(reply, "gpu_types"));
	attempt->suspects = json_incref(json_object_get(reply, "suspects"));
	return 0;
}

/* Sends one request. Returns false if it is to be sent again after *again_ms. */
static bool decided(struct wlb_run *run, json_t *reply, struct wlb_attempt *attempt, char state[32],
                    enum wlb_answer *answer, int *again_ms, struct wlb_error *error)
{
	const char *word = "", *reason = "", *end_state = "failed";
	double after_s = 1;
	json_unpack(reply, "{s:s, s?s, s?s, s?F}", "decision", &word, "reason", &reason, "state", &end_state,
	            "retry_after_s", &after_s);
	if (strcmp(word, "start") == 0) {
		bool is_read = read_start(run, reply, attempt, error) == 0;
		if (is_read)
			*answer = WLB_ANSWER_START;
		return is_read;
	}
	if (strcmp(word, "stop") == 0) {
		*answer = WLB_ANSWER_STOP;
		wlb_text_show(attempt->reason, sizeof(attempt->reason), reason);
		snprintf(state, 32, "%s", end_state);
		return true;
	}
	*again_ms = after_s > 0.05 && after_s < 30 ? (int)(after_s * 1000) : AGAIN_MS;
	wlb_fail(error, "%s", *reason ? reason : "no decision yet");
	return false;
}

/* Returns whether the coordinator wants the links to be checked before it decides. The next request then has what was
 * found; where they could not be checked, it has nothing, and the coordinator decides without. */
static bool check_links(struct wlb_run *run, const json_t *reply, json_t *body)
{
	struct wlb_error error = {0};
	const char *word = json_string_value(json_object_get(reply, "decision"));
	json_t *links = json_object_get(body, "links");
	if (word == NULL || strcmp(word, "check_links") != 0 || json_is_true(json_object_get(links, "checked")))
		return false;
	json_t *unreached = wlb_run_check_links(run, json_object_get(reply, "nodes"), &error);
	if (unreached == NULL && !wlb_run_must_end(run))
		wlb_run_print("the links between the nodes are not known: %s", error.message);
	json_object_set_new(links, "checked", json_true());
	json_object_set_new(links, "unreached", unreached != NULL ? unreached : json_object());
	return !wlb_run_must_end(run);
}

/* Until when the request is repeated: while the coordinator does not answer, and while its decision is "wait". */
struct deadlines {
	int64_t unavailable_until_ms, unavailable_ms; /* from its last answer on */
	int64_t wait_until_ms;
	bool printed; /* that it does not answer, or wants to wait */
};

/* A refusal does not change when the request is repeated, nor does one that cannot be made. */
static bool is_refusal(int status)
{
	return status == WLB_API_NOT_SENT || (status >= 400 && status < 500);
}

/* Whether the request may be repeated after a pause; sets the deadlines anew. */
static bool may_repeat(struct deadlines *deadlines, int status, int again_ms, const struct wlb_error *why)
{
	if (is_refusal(status))
		return false;
	if (wlb_clock_left_ms(status == 200 ? deadlines->wait_until_ms : deadlines->unavailable_until_ms) == 0)
		return false;
	if (status == 200)
		deadlines->unavailable_until_ms = wlb_clock_ms() + again_ms + deadlines->unavailable_ms;
	/* A pause that the coordinator wants is no decision that does not come. */
	if (status == 200 && again_ms > AGAIN_MS)
		deadlines->wait_until_ms += again_ms;
	bool is_news = status != 200 || again_ms > AGAIN_MS;
	if (!deadlines->printed && is_news)
		wlb_run_print("%s%s", status != 200 ? "waiting for the coordinator: " : "", why->message);
	deadlines->printed = deadlines->printed || is_news;
	return true;
}

/* Pauses before the request is repeated. Returns false where the run does not wait any longer: it has to end, or the
 * job's end is near and the decision would come too late. Only a job that still runs can be requeued. */
static bool pause_in_time(struct wlb_run *run, const struct wlb_turn *turn, int pause_ms)
{
	int64_t until_ms = wlb_clock_ms() + pause_ms;
	int left_ms;
	while ((left_ms = wlb_clock_left_ms(until_ms)) > 0) {
		if (wlb_run_next(run, turn).step != WLB_NEXT_WAIT ||
		    !wlb_run_pause(run, left_ms < AGAIN_MS ? left_ms : AGAIN_MS))
			return false;
	}
	return true;
}

void wlb_run_ask(struct wlb_run *run, struct wlb_turn *turn, int unavailable_s)
{
	const struct wlb_attempt *previous = wlb_turn_last(turn);
	struct wlb_error *error = &turn->error;
	char path[128];
	int decide_s = run->options.wait_s > DECIDE_MIN_S ? run->options.wait_s : DECIDE_MIN_S;
	int64_t now_ms = wlb_clock_ms(), unavailable_ms = unavailable_s * INT64_C(1000);
	struct deadlines deadlines = {.unavailable_until_ms = now_ms + unavailable_ms,
	                              .unavailable_ms = unavailable_ms,
	                              .wait_until_ms = now_ms + decide_s * INT64_C(1000)};
	enum wlb_answer answer = WLB_ANSWER_UNAVAILABLE;
	json_t *body = ask_body(run, previous, &turn->next);
	bool is_refused = false;
	turn->answer = WLB_ANSWER_WAIT;
	for (;;) {
		int status = 0, again_ms = AGAIN_MS;
		json_t *reply = NULL;
		bool announced = run->announced || announce(run, &status, error) == 0;
		if (announced && (previous != NULL || run->job.restart_count > 0))
			wlb_run_deliver(run, DELIVER_MS, NULL);
		/* The announcement may have given the run another name. */
		snprintf(path, sizeof(path), "/v1/runs/%s/attempts", run->id);
		if (announced)
			reply = wlb_api_request(run->connection, "POST", path, body, ASK_MS, &status, error);
		bool is_asked_again = reply != NULL && check_links(run, reply, body);
		bool done = reply != NULL && decided(run, reply, &turn->next, turn->state, &answer, &again_ms, error);
		json_decref(reply);
		if (is_asked_again) { /* the check has taken its time since the coordinator answered */
			deadlines.unavailable_until_ms = wlb_clock_ms() + deadlines.unavailable_ms;
			continue;
		}
		if (announced && status == 404) { /* it does not know the run any more: it is announced again */
			run->announced = false;
			status = 0;
		}
		is_refused = is_refusal(status);
		if (done || !may_repeat(&deadlines, status, again_ms, error))
			break;
		if (!pause_in_time(run, turn, again_ms)) {
			answer = WLB_ANSWER_WAIT;
			break;
		}
	}
	json_decref(body);
	turn->answer = answer == WLB_ANSWER_UNAVAILABLE && is_refused ? WLB_ANSWER_REFUSED : answer;
}

void wlb_run_end(const struct wlb_run *run, const struct wlb_attempt *last, const char *state, int exit_code,
                 const char *reason)
{
	char path[128];
	int left_ms = wlb_clock_left_ms(run->end_until_ms);
	if (run->connection == NULL || !run->announced || run->is_unavailable)
		return;
	snprintf(path, sizeof(path), "/v1/runs/%s/end", run->id);
	json_t *body =
		json_pack("{s:s, s:i, s:o}", "state", state, "exit_code", exit_code, "reason", wlb_json_text(reason));
	if (last != NULL) {
		wlb_attempt_end_put(run, last, body);
		json_object_set_new(body, "attempt_id", json_string(last->id));
	}
	json_decref(wlb_api_request(run->connection, "POST", path, body, left_ms > END_MIN_MS ? left_ms : END_MIN_MS,
	                            NULL, NULL));
	json_decref(body);
}
