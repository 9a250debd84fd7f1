#include "coordinator/wlbd/verdicts/found_verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/rank_trace.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/incident/faults.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/verdicts/outliers.h"
#include "coordinator/wlbd/verdicts/past_evictions.h"
#include "coordinator/wlbd/verdicts/process_faults.h"
#include "coordinator/wlbd/wlbd.h"

enum { STORED_IN_A_MINUTE = 120, MINUTE_MS = 60000 };

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

struct kind {
	const char *name;          /* in the schema */
	enum wlb_fault_kind fault; /* that ends an attempt */
	const char *does;          /* what the ranks do, after their names */
	size_t action;             /* the offset in struct wlb_on_fault of what is done about it */
	bool stands_still;
};

#define ACTION(name) offsetof(struct wlb_on_fault, name)

static const struct kind *kind_of(enum wlb_verdict_kind kind)
{
	static const struct kind kinds[] = {
		[WLB_VERDICT_CRASH] = {"crash", WLB_FAULT_RANK_LOST, "crashed", ACTION(crash), false},
		[WLB_VERDICT_HANG] = {"hang", WLB_FAULT_HANG, "hangs", ACTION(hang), true},
		[WLB_VERDICT_HANG_COMMUNICATION] = {"hang_in_communication", WLB_FAULT_HANG, "hangs in communication",
	                                            ACTION(hang), true},
		[WLB_VERDICT_DEADLOCK] = {"deadlock", WLB_FAULT_HANG, "waits in a deadlock", ACTION(hang), true},
		[WLB_VERDICT_SLOW_COMPUTE] = {"slow_compute", WLB_FAULT_SLOW_RANK, "computes slowly", ACTION(slow),
	                                      false},
		[WLB_VERDICT_SLOW_NODE] = {"slow_node", WLB_FAULT_SLOW_NODE, "computes slowly", ACTION(slow), false},
		[WLB_VERDICT_SLOW_LINK] = {"slow_link", WLB_FAULT_SLOW_LINK, "has a slow link", ACTION(slow), false},
		[WLB_VERDICT_SLOW_NIC] = {"slow_nic", WLB_FAULT_SLOW_LINK, "has a slow network interface", ACTION(slow),
	                                  false},
		[WLB_VERDICT_SLOW_LOADER] = {"slow_loader", WLB_FAULT_SLOW_LOADER, "waits for its loader", ACTION(slow),
	                                     false},
		[WLB_VERDICT_SLOW_STORAGE] = {"slow_storage", WLB_FAULT_SLOW_LOADER, "waits for its files",
	                                      ACTION(slow), false},
		[WLB_VERDICT_BAD_VALUES] = {"bad_values", WLB_FAULT_BAD_VALUES, "computes values unlike its peers'",
	                                    ACTION(corrupt), false},
		[WLB_VERDICT_OUTLIERS] = {"stack_outliers", WLB_FAULT_HANG,
	                                  "is in a different function from most ranks", ACTION(outliers), true},
	};
	return &kinds[kind];
}

bool wlbd_verdict_stands_still(enum wlb_verdict_kind kind)
{
	return kind_of(kind)->stands_still;
}

static enum wlb_fault_action wanted_action(const struct wlbd_attempt *attempt, enum wlb_verdict_kind kind)
{
	return *(const enum wlb_fault_action *)((const char *)&attempt->policy.on_fault + kind_of(kind)->action);
}

/* A run that makes progress is not ended for a node where another would be used again for it, which may be as bad. */
static bool is_one_too_many(const struct wlbd_attempt *attempt, enum wlb_verdict_kind kind)
{
	return kind != WLB_VERDICT_CRASH && !wlbd_verdict_stands_still(kind) &&
	       wanted_action(attempt, kind) == WLB_FAULT_EVICT && wlbd_past_evictions_at_limit(attempt);
}

enum wlb_fault_action wlbd_verdict_action(const struct wlbd_attempt *attempt, enum wlb_verdict_kind kind)
{
	return is_one_too_many(attempt, kind) ? WLB_FAULT_REPORT : wanted_action(attempt, kind);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static int listed(const struct wlbd_found_verdict *found)
{
	int count = found->verdict.rank_count;
	return count < WLB_VERDICT_RANKS ? count : WLB_VERDICT_RANKS;
}

static const char *node_name(const struct wlbd_attempt *attempt, int node)
{
	return node >= 0 && node < attempt->nodes.started_on.count ? attempt->nodes.started_on.list[node] : NULL;
}

const char *wlbd_verdict_node(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found)
{
	if (found->verdict.node >= 0)
		return node_name(attempt, found->verdict.node);
	if (found->verdict.rank_count < 1 || found->verdict.rank_count > WLB_VERDICT_RANKS)
		return NULL;
	for (int i = 1; i < listed(found); i++)
		if (found->node_of[i] != found->node_of[0])
			return NULL;
	return node_name(attempt, found->node_of[0]);
}

/* Writes "rank 3 on n2", "node n2" or "rank 1 on n1, rank 2 on n2 and 14 more". */
static void name_ranks(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found, char *text,
                       size_t size)
{
	enum { NAMED_MAX = 2 };
	const struct wlb_verdict *verdict = &found->verdict;
	size_t length = 0;
	text[0] = '\0';
	if (verdict->node >= 0 && verdict->rank_count != 1) {
		const char *node = node_name(attempt, verdict->node);
		snprintf(text, size, "node %s", node != NULL ? node : "?");
		return;
	}
	for (int i = 0; i < verdict->rank_count && i < NAMED_MAX && length < size; i++) {
		const char *node = node_name(attempt, found->node_of[i]);
		length += (size_t)snprintf(text + length, size - length, "%srank %d on %.64s", i > 0 ? ", " : "",
		                           verdict->ranks[i], node != NULL ? node : "?");
	}
	if (verdict->rank_count > NAMED_MAX && length < size)
		snprintf(text + length, size - length, " and %d more", verdict->rank_count - NAMED_MAX);
}

void wlbd_verdict_text(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found,
                       char text[WLBD_VERDICT_TEXT_SIZE])
{
	char ranks[WLBD_VERDICT_TEXT_SIZE / 2 + 64];
	char step[48] = "";
	name_ranks(attempt, found, ranks, sizeof(ranks));
	if (found->verdict.since_step >= 0)
		snprintf(step, sizeof(step), " at step %lld", (long long)found->verdict.since_step);
	snprintf(text, WLBD_VERDICT_TEXT_SIZE, "%.150s %s%s", ranks, kind_of(found->verdict.kind)->does, step);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static const char *state_name(enum wlb_verdict_stage stage)
{
	return stage == WLB_VERDICT_SUSPECTED ? "suspected" : stage == WLB_VERDICT_CONFIRMED ? "confirmed" : "over";
}

static json_t *nodes_json(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found)
{
	json_t *nodes = json_array();
	const char *one = wlbd_verdict_node(attempt, found);
	if (one != NULL)
		json_array_append_new(nodes, json_string(one));
	for (int i = 0; one == NULL && i < listed(found); i++) {
		const char *name = node_name(attempt, found->node_of[i]);
		bool is_repeated = false;
		for (int before = 0; before < i; before++)
			is_repeated = is_repeated || found->node_of[before] == found->node_of[i];
		if (name != NULL && !is_repeated)
			json_array_append_new(nodes, json_string(name));
	}
	return nodes;
}

static json_t *integer_or_null(bool is_known, json_int_t value)
{
	return is_known ? json_integer(value) : json_null();
}

enum { EVIDENCE_SIZE = sizeof(((struct wlb_verdict *)NULL)->evidence) + 160 };

/* Writes the evidence, and why nothing is done about it although the user wants it. */
static void write_evidence(const struct wlbd_attempt *attempt, const struct wlb_verdict *verdict,
                           char text[EVIDENCE_SIZE])
{
	const struct wlbd_excluded *excluded = &attempt->excluded;
	int length = snprintf(text, EVIDENCE_SIZE, "%s", verdict->evidence);
	if (!is_one_too_many(attempt, verdict->kind))
		return;
	if (excluded->used > 0)
		snprintf(text + length, (size_t)(EVIDENCE_SIZE - length),
		         "; the attempt is not ended, since it needs %d node%s that an earlier one evicted: without "
		         "more nodes too few would be left",
		         excluded->used, excluded->used == 1 ? "" : "s");
	else
		snprintf(text + length, (size_t)(EVIDENCE_SIZE - length),
		         "; the attempt is not ended, since %d node%s excluded already, the most that may be of this "
		         "job",
		         excluded->count, excluded->count == 1 ? " is" : "s are");
}

/* The fields that the database and GET /v1/runs/RUN/ranks have in common. */
static json_t *verdict_json(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found)
{
	const struct wlb_verdict *verdict = &found->verdict;
	json_t *ranks = json_array();
	for (int i = 0; i < listed(found); i++)
		json_array_append_new(ranks, json_integer(verdict->ranks[i]));
	bool is_evicted = wlbd_verdict_action(attempt, verdict->kind) == WLB_FAULT_EVICT;
	char evidence[EVIDENCE_SIZE];
	write_evidence(attempt, verdict, evidence);
	return json_pack("{s:I, s:s, s:s, s:o, s:i, s:o, s:s?, s:o, s:o, s:o, s:f, s:s, s:s}", "number",
	                 (json_int_t)found->number, "kind", kind_of(verdict->kind)->name, "state",
	                 state_name(verdict->stage), "ranks", ranks, "rank_count", verdict->rank_count, "nodes",
	                 nodes_json(attempt, found), "collective",
	                 found->collective[0] != '\0' ? found->collective : NULL, "sequence",
	                 integer_or_null(verdict->sequence > 0, (json_int_t)verdict->sequence), "step",
	                 integer_or_null(verdict->since_step >= 0, verdict->since_step), "cost_percent",
	                 verdict->cost_percent >= 0 ? json_real(verdict->cost_percent) : json_null(), "certainty",
	                 verdict->certainty, "evidence", evidence, "action", is_evicted ? "evict" : "report");
}

static void append_open(json_t *list, const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found,
                        int64_t now_ms)
{
	double since_s = 1e-3 * (double)now_ms - found->verdict.since_s;
	if (found->verdict.stage == WLB_VERDICT_OVER)
		return;
	json_t *entry = verdict_json(attempt, found);
	json_object_set_new(entry, "since_s", json_real(since_s > 0 ? since_s : 0));
	json_array_append_new(list, entry);
}

json_t *wlbd_verdicts_json(const struct wlbd_attempt *attempt, int64_t now_ms)
{
	json_t *list = json_array();
	int count;
	const struct wlbd_found_verdict *found = wlbd_detection_open(attempt->watch.detection, &count);
	const struct wlbd_found_verdict *outliers = wlbd_outliers_open(attempt->outliers);
	for (int i = 0; i < count; i++)
		append_open(list, attempt, &found[i], now_ms);
	if (outliers != NULL)
		append_open(list, attempt, outliers, now_ms);
	found = wlbd_process_faults_open(attempt, &count);
	for (int i = 0; i < count; i++)
		append_open(list, attempt, &found[i], now_ms);
	return list;
}

static json_t *ranks_json(const struct wlbd_open_call_ranks *ranks)
{
	json_t *list = json_array();
	for (int i = 0; i < ranks->count && i < WLBD_OPEN_CALL_RANKS; i++)
		json_array_append_new(list, json_integer(ranks->list[i]));
	return list;
}

/* The collectives that were in progress when the verdict was found: what the run waits for. */
static json_t *calls_json(const struct wlbd_attempt *attempt)
{
	struct wlbd_open_call calls[WLBD_OPEN_CALLS_MAX];
	json_t *list = json_array();
	int count = wlbd_detection_open_calls(attempt->watch.detection, calls);
	for (int i = 0; i < count; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:s?, s:I, s:o, s:i, s:o, s:i}", "communicator", calls[i].communicator, "kind",
		                  calls[i].kind >= 0 ? wlb_comm_kind_name((enum wlb_comm_kind)calls[i].kind) : NULL,
		                  "sequence", (json_int_t)calls[i].sequence, "inside", ranks_json(&calls[i].inside),
		                  "inside_count", calls[i].inside.count, "missing", ranks_json(&calls[i].missing),
		                  "missing_count", calls[i].missing.count));
	return list;
}

/* ---- the log and the database ------------------------------------------------------------------------------------ */

static void log_verdict(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found)
{
	char text[WLBD_VERDICT_TEXT_SIZE];
	char evidence[EVIDENCE_SIZE];
	wlbd_verdict_text(attempt, found, text);
	write_evidence(attempt, &found->verdict, evidence);
	wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_VERDICTS, "run %s, attempt %lld: %s: %s: %s", attempt->run,
	                 (long long)attempt->number, state_name(found->verdict.stage), text, evidence);
}

static bool may_store(struct wlbd_attempt *attempt, int64_t now_ms)
{
	if (now_ms - attempt->stored_verdicts.since_ms > MINUTE_MS) {
		attempt->stored_verdicts.since_ms = now_ms;
		attempt->stored_verdicts.count = 0;
	}
	return attempt->stored_verdicts.count++ < STORED_IN_A_MINUTE;
}

void wlbd_verdict_store(struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found, int64_t now_ms)
{
	struct wlbd *wlbd = attempt->wlbd;
	struct wlbd_params params = {0};
	if (!may_store(attempt, now_ms))
		return;
	log_verdict(attempt, found);
	json_t *entry = verdict_json(attempt, found);
	json_object_set_new(entry, "time", json_real(wlb_clock_unix_s()));
	if (found->verdict.stage != WLB_VERDICT_OVER && wlbd_verdict_stands_still(found->verdict.kind))
		json_object_set_new(entry, "calls", calls_json(attempt));
	json_object_set_new(entry, "began", json_real(wlb_clock_unix_at_s((int64_t)(1e3 * found->verdict.since_s))));
	char *text = json_dumps(entry, JSON_COMPACT);
	json_decref(entry);
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, wlbd->started_unix_ms);
	wlbd_params_add_text(&params, text);
	wlbd_outbox_put(wlbd->outbox, attempt->uid, attempt->run_pk,
	                "select wlb_verdict_put($1, $2, $3::jsonb), wlb_verdict_calls_put($1, $2, $3::jsonb)", &params);
	free(text);
}

void wlbd_verdict_store_fault(struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found)
{
	const struct wlb_verdict *verdict = &found->verdict;
	char text[WLBD_VERDICT_TEXT_SIZE];
	wlbd_verdict_text(attempt, found, text);
	wlbd_fault_record_evicted(attempt, &(struct wlbd_eviction){
						   .kind = kind_of(verdict->kind)->fault,
						   .rank = verdict->rank_count == 1 ? verdict->ranks[0] : -1,
						   .node = wlbd_verdict_node(attempt, found),
						   .step = verdict->since_step,
						   .text = text,
						   .evidence = verdict->evidence,
					   });
}
