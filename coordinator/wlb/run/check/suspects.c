#include "coordinator/wlb/run/check/suspects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks/links/bounds.h"
#include "checks/node/bounds.h"
#include "common/clock.h"
#include "common/json_text.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/run/check/checked_products.h"
#include "coordinator/wlb/run/check/link_times.h"
#include "coordinator/wlb/run/check/links.h"
#include "coordinator/wlb/run/check/machine_dtype.h"
#include "coordinator/wlb/run/plan/gpu_types.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/record.h"

enum {
	AFTER_MS = 5000, /* from the start of the attempt: its own start is not disturbed */
	STEP_MS = 30000, /* for Slurm to create the step of a check */
	/* With that step. A device that hangs is found by the check, which therefore must not be ended before. */
	NODE_MS = STEP_MS + 1000 * WLB_CHECK_NODE_MOST_S,
	LINKS_MS = STEP_MS + 1000 * WLB_CHECK_LINKS_MOST_S,
	NEIGHBOURS_MAX = 8,
	REPORT_MS = 2000,
	REPORT_AGAIN_MS = 5000, /* between two tries, so that a coordinator that is unavailable seldom delays the run */
	/* The caller comes many times a second. The deadlines of a check allow for less than this, and go on while its
	 * job is suspended. */
	SUSPENDED_MS = 3000,
};

static void forget_findings(struct wlb_run_suspects *suspects)
{
	json_decref(suspects->found);
	json_decref(suspects->linked);
	suspects->found = NULL;
	suspects->linked = NULL;
}

static void next_suspect(struct wlb_run_suspects *suspects)
{
	forget_findings(suspects);
	suspects->was_suspended = false;
	json_array_remove(suspects->nodes, 0);
}

static void forget(struct wlb_run_suspects *suspects)
{
	forget_findings(suspects);
	json_decref(suspects->nodes);
	json_decref(suspects->unsent);
	suspects->nodes = NULL;
	suspects->unsent = NULL;
}

void wlb_run_suspects_begin(struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_reporter *reporter)
{
	struct wlb_run_suspects *suspects = run->suspects;
	forget(suspects);
	*suspects = (struct wlb_run_suspects){
		.reporter = reporter, .nodes = json_copy(attempt->suspects), .begin_ms = wlb_clock_ms() + AFTER_MS};
}

static const char *first_name(const struct wlb_run_suspects *suspects)
{
	return json_string_value(json_array_get(suspects->nodes, 0));
}

/* The coordinator's record keeps it, too: what a run says in its job's output is not read later. */
static void tell_not_checked(const struct wlb_run *run, const char *node, const char *why)
{
	char detail[640];
	wlb_run_print("%s, which this attempt excludes, could not be checked: %s", node, why);
	wlb_text_format(detail, sizeof(detail), "%s could not be checked: %s", node, why);
	wlb_run_record_event(run->suspects->reporter, "node_not_checked", detail);
}

/* ---- steps ------------------------------------------------------------------------------------- */

static void start_step(struct wlb_run *run, const json_t *nodes, const char *mpi, const char *const *words,
                       int64_t limit_ms)
{
	struct wlb_run_suspects *suspects = run->suspects;
	const struct wlb_check_command command = {.nodes = nodes,
	                                          .mpi = mpi,
	                                          .words = words,
	                                          .gpus_per_node = run->job.gpus_per_node,
	                                          .limit_ms = limit_ms};
	struct wlb_error error = {.message = "out of memory"};
	if (nodes != NULL && wlb_check_step_start(&run->signals_before, &command, &suspects->step, &error) == 0)
		return;
	tell_not_checked(run, first_name(suspects), error.message);
	next_suspect(suspects);
}

static void start_node_check(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	char gpus[16];
	char disk_mib[16], disk_mib_per_s[16];
	const char *words[15] = {"check-node", "--json", "--disk-mib", disk_mib, "--disk-mib-per-s", disk_mib_per_s};
	int at = 6;
	snprintf(disk_mib, sizeof(disk_mib), "%d", WLB_CHECK_SUSPECT_DISK_MIB);
	snprintf(disk_mib_per_s, sizeof(disk_mib_per_s), "%d", WLB_CHECK_SUSPECT_DISK_MIB_PER_S);
	json_t *node = json_pack("[s]", first_name(run->suspects));
	const char *dtype = wlb_run_machine_dtype(run->job.gpus_per_node > 0);
	if (dtype != NULL) {
		words[at++] = "--dtype";
		words[at++] = dtype;
	}
	if (run->job.gpus_per_node > 0) {
		snprintf(gpus, sizeof(gpus), "%d", run->job.gpus_per_node);
		words[at++] = "--device";
		words[at++] = "cuda";
		words[at++] = "--gpus";
		words[at++] = gpus;
	}
	/* WLB_MACHINE describes the attempt's nodes. */
	if (wlb_run_has_other_gpus(run, attempt, first_name(run->suspects))) {
		words[at++] = "--only";
		words[at++] = "products,memory,disk";
	}
	start_step(run, node, "none", words, NODE_MS);
	json_decref(node);
}

/* Checks the links to some nodes, evenly spread over the attempt, by one message each beside the messages of the run.
 */
static void start_link_check(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	static const char *const words[] = {"check-links", "--times", NULL};
	struct wlb_run_suspects *suspects = run->suspects;
	int count = attempt->node_count < NEIGHBOURS_MAX ? attempt->node_count : NEIGHBOURS_MAX;
	suspects->linked = json_pack("[s]", first_name(suspects));
	for (int i = 0; i < count; i++)
		json_array_append_new(suspects->linked,
		                      wlb_json_text(attempt->nodes[(int64_t)i * attempt->node_count / count]));
	start_step(run, suspects->linked, "pmix", words, LINKS_MS);
}

/* ---- what was found ---------------------------------------------------------------------------------------------- */

/* The run may grow to a node that passed, as to one that answers again. */
static void give_back(struct wlb_attempt *attempt, const char *node)
{
	char **grown = reallocarray(attempt->unresponsive, (size_t)attempt->unresponsive_count + 2, sizeof(*grown));
	if (grown == NULL)
		return;
	attempt->unresponsive = grown;
	grown[attempt->unresponsive_count] = strdup(node);
	attempt->unresponsive_count += grown[attempt->unresponsive_count] != NULL;
}

/* Returns whether the coordinator has taken it, or refuses it for good; else the same may be sent again: a coordinator
 * that has stored it already ignores the repetition. */
static bool report(struct wlb_run *run, const struct wlb_attempt *attempt, const char *node, const json_t *found,
                   bool *is_taken, struct wlb_error *error)
{
	char path[128];
	int status = 0;
	json_t *body = json_deep_copy(found);
	snprintf(path, sizeof(path), "/v1/runs/%s/node_checks", run->id);
	json_object_set_new(body, "attempt_id", json_string(attempt->id));
	json_object_set_new(body, "node", json_string(node));
	json_t *reply = wlb_api_request(run->connection, "POST", path, body, REPORT_MS, &status, error);
	*is_taken = reply != NULL;
	json_decref(body);
	json_decref(reply);
	return *is_taken || (status != 0 && status < 500);
}

/* Returns false with the reason where it is to be sent again. */
static bool tell(struct wlb_run *run, struct wlb_attempt *attempt, const char *node, const json_t *found,
                 struct wlb_error *error)
{
	const char *reason = "it says nothing";
	bool is_taken;
	json_unpack((json_t *)found, "{s?s}", "reason", &reason);
	if (!report(run, attempt, node, found, &is_taken, error))
		return false;
	if (!is_taken) {
		wlb_run_print("the check of %s is not recorded: %s", node, error->message);
	} else if (json_is_true(json_object_get(found, "healthy"))) {
		wlb_run_print("%s, which this attempt excludes, has passed its check: the next attempt may use it",
		              node);
		give_back(attempt, node);
	} else {
		wlb_run_print("%s, which this attempt excludes, has failed its check: %s", node, reason);
	}
	return true;
}

/* Nothing is sent while something waits to be sent again: each try may delay the run. */
static void tell_or_keep(struct wlb_run *run, struct wlb_attempt *attempt, json_t *found)
{
	struct wlb_run_suspects *suspects = run->suspects;
	const char *node = first_name(suspects);
	struct wlb_error error = {.message = "the result of another node has to be recorded first"};
	bool is_first = json_array_size(suspects->unsent) == 0;
	if (is_first && tell(run, attempt, node, found, &error))
		return;
	wlb_run_print("the check of %s is not recorded yet: %s", node, error.message);
	if (suspects->unsent == NULL)
		suspects->unsent = json_array();
	json_array_append_new(suspects->unsent, json_pack("{s:s, s:O}", "node", node, "found", found));
	if (is_first)
		suspects->next_send_ms = wlb_clock_ms() + REPORT_AGAIN_MS;
}

/* Returns false with the reason where the first result that was not taken is not taken now either. */
static bool send_first(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	const json_t *first = json_array_get(run->suspects->unsent, 0);
	const char *node = json_string_value(json_object_get(first, "node"));
	if (!tell(run, attempt, node, json_object_get(first, "found"), error))
		return false;
	json_array_remove(run->suspects->unsent, 0);
	return true;
}

static void tell_again(struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_run_suspects *suspects = run->suspects;
	struct wlb_error error;
	if (json_array_size(suspects->unsent) == 0 || wlb_clock_left_ms(suspects->next_send_ms) > 0)
		return;
	if (!send_first(run, attempt, &error))
		suspects->next_send_ms = wlb_clock_ms() + REPORT_AGAIN_MS;
}

/* What fails in a check during which the job was suspended says nothing of the node. */
static void tell_result(struct wlb_run *run, struct wlb_attempt *attempt, json_t *found)
{
	if (run->suspects->was_suspended && !json_is_true(json_object_get(found, "healthy")))
		tell_not_checked(run, first_name(run->suspects), "the job was suspended during its check");
	else
		tell_or_keep(run, attempt, found);
}

/* The next attempt is decided after this. A run that ends with this one has no use for the result, and nothing waits
 * for the coordinator then. */
static void tell_at_last(struct wlb_run *run, struct wlb_attempt *attempt)
{
	bool is_last = run->cancelled || (attempt->exit_code == 0 && !attempt->stopped);
	struct wlb_error error = {.message = "the coordinator is unavailable"};
	const json_t *unsent;
	size_t i;
	while (!run->abandoned && !is_last && json_array_size(run->suspects->unsent) > 0)
		is_last = !send_first(run, attempt, &error);
	if (run->abandoned)
		return;
	wlb_fail_in(&error, "what its check found is not recorded");
	json_array_foreach(run->suspects->unsent, i, unsent)
		tell_not_checked(run, json_string_value(json_object_get(unsent, "node")), error.message);
}

/* Returns the report of wlb-check-node, which begins a line; NULL where there is none. A site's TaskProlog may have
 * printed lines before it, and a TaskEpilog may print some behind it. */
static json_t *read_report(const char *text)
{
	const char *line = text;
	while (line != NULL && *line != '{') {
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return line != NULL ? json_loads(line, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

/* Returns whether the node has passed, and its links are to be checked: its products have to be exact for that. `why`
 * is told where `text` has no whole report. A whole report counts also where the step does not end because a process
 * hangs in the kernel. */
static bool take_node_check(struct wlb_run *run, struct wlb_attempt *attempt, const char *text, const char *why)
{
	json_t *found = read_report(text);
	const json_t *healthy = json_object_get(found, "healthy");
	char unchecked[400] = "";
	if (json_is_true(healthy))
		wlb_run_unchecked_products(found, unchecked, sizeof(unchecked));
	if (json_is_true(healthy) && *unchecked == '\0') {
		run->suspects->found = found;
		return true;
	}
	if (*unchecked != '\0')
		tell_not_checked(run, first_name(run->suspects), unchecked);
	else if (json_is_boolean(healthy))
		tell_result(run, attempt, found);
	else
		tell_not_checked(run, first_name(run->suspects), why);
	json_decref(found);
	return false;
}

/* limit: NULL where there is none. */
static void add_link_finding(json_t *found, bool is_ok, const char *measured, const char *limit)
{
	json_array_append_new(json_object_get(found, "checks"),
	                      json_pack("{s:s, s:s, s:s, s:s?}", "check", "links", "verdict", is_ok ? "ok" : "failed",
	                                "measured", measured, "limit", limit));
	if (is_ok)
		return;
	json_object_set_new(found, "healthy", json_false());
	json_object_set_new(
		found, "reason",
		json_sprintf("links: %s%s%s", measured, limit != NULL ? "; limit: " : "", limit != NULL ? limit : ""));
}

/* Returns false where the ranks do not say how fast the node's links are. Of a run on one node there are no pairs to
 * compare them with: that they carry messages is enough then. */
static bool take_link_times(struct wlb_run *run, const char *text)
{
	struct wlb_run_suspects *suspects = run->suspects;
	struct wlb_link_times times;
	char measured[320], limit[64];
	if (wlb_run_read_link_times(text, suspects->linked, first_name(suspects), &times)) {
		wlb_text_format(measured, sizeof(measured),
		                "exchanges %d KiB with %.128s in %.1f ms, other pairs take %.1f ms", times.bytes >> 10,
		                times.other, 1e3 * times.own_s, 1e3 * times.others_s);
		snprintf(limit, sizeof(limit), "%d times as long, and %g ms longer", WLB_LINK_SLOWER,
		         1e3 * WLB_LINK_SLOWER_S);
		add_link_finding(suspects->found, !wlb_run_link_is_slow(&times), measured, limit);
		return true;
	}
	if (json_array_size(suspects->linked) > 2)
		return false;
	add_link_finding(suspects->found, true, "exchanges messages with a node of the run", NULL);
	return true;
}

/* `why` is told where `text`, which is NULL where it is not whole, says nothing of the node. */
static void take_link_check(struct wlb_run *run, struct wlb_attempt *attempt, char *text, const char *why)
{
	struct wlb_run_suspects *suspects = run->suspects;
	char names[256] = "", measured[320], *lines = text != NULL ? strdup(text) : NULL;
	enum wlb_link_state state = WLB_LINK_UNKNOWN;
	if (lines != NULL)
		state = wlb_run_link_state(lines, suspects->linked, first_name(suspects), names, sizeof(names));
	free(lines);
	if (state == WLB_LINK_UNREACHED) {
		wlb_text_format(measured, sizeof(measured), "exchanges no messages with %s", names);
		add_link_finding(suspects->found, false, measured, NULL);
	}
	if (state == WLB_LINK_UNREACHED || (state == WLB_LINK_REACHED && take_link_times(run, text)))
		tell_result(run, attempt, suspects->found);
	else
		tell_not_checked(run, first_name(suspects), why);
}

/* ---- one check after the other ------------------------------------------------------------------------------------
 */

/* Says why a check that found nothing did so. */
static void say_why(bool of_node, bool is_late, int exit_code, char *why, size_t size)
{
	const char *check = of_node ? "its check" : "the check of its links";
	if (is_late)
		snprintf(why, size, "%s did not end within %d s", check, (of_node ? NODE_MS : LINKS_MS) / 1000);
	else
		snprintf(why, size, "%s ended with exit code %d and without a result", check, exit_code);
}

static void note_suspension(struct wlb_run_suspects *suspects)
{
	int64_t now_ms = wlb_clock_ms();
	if (suspects->step.srun != 0 && now_ms - suspects->seen_ms > SUSPENDED_MS)
		suspects->was_suspended = true;
	suspects->seen_ms = now_ms;
}

void wlb_run_suspects_check(struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_run_suspects *suspects = run->suspects;
	note_suspension(suspects);
	tell_again(run, attempt);
	if (json_array_size(suspects->nodes) == 0 || wlb_clock_left_ms(suspects->begin_ms) > 0)
		return;
	if (suspects->step.srun == 0) {
		start_node_check(run, attempt);
		return;
	}
	enum wlb_check_progress progress = wlb_check_step_poll(&suspects->step);
	if (progress == WLB_CHECK_STEP_RUNS)
		return;
	char *text, why[128];
	bool of_node = suspects->found == NULL, is_late = progress == WLB_CHECK_STEP_LATE, goes_on = false;
	int exit_code = wlb_check_step_end(&suspects->step, &text);
	say_why(of_node, is_late, exit_code, why, sizeof(why));
	if (of_node)
		goes_on = take_node_check(run, attempt, text, why);
	else
		take_link_check(run, attempt, is_late ? NULL : text, why);
	free(text);
	if (goes_on)
		start_link_check(run, attempt);
	else
		next_suspect(suspects);
}

void wlb_run_suspects_end(struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_run_suspects *suspects = run->suspects;
	char *text = NULL;
	if (suspects->step.srun != 0)
		wlb_check_step_end(&suspects->step, &text);
	free(text);
	tell_at_last(run, attempt);
	forget(suspects);
}
