#include "coordinator/wlbd/rules/cause.h"

#include "common/json_text.h"
#include "common/rank_end.h"
#include "libwlb/wlb.h"

enum { NEVER = -1 }; /* as a strength */

int wlbd_cause_follow_ms(int exit_code)
{
	bool may_follow = exit_code == 0 || wlb_rank_end_may_be_slurms(exit_code) ||
	                  wlb_rank_end_strength(exit_code) == WLB_END_BROKEN_PIPE;
	return may_follow ? WLBD_FOLLOW_MS : 0;
}

/* Whether the fault is a process that was killed without which the ranks do not run on. */
static bool is_killed(const struct wlbd_fault *fault)
{
	return fault->kind == WLB_FAULT_LAUNCHER_LOST || fault->kind == WLB_FAULT_SCRIPT_LOST ||
	       (fault->kind == WLB_FAULT_STEP_FAILED && fault->is_step_broken);
}

static bool has_ended(const struct wlbd_fault *fault)
{
	return fault->kind == WLB_FAULT_RANK_LOST && fault->exit_code != 0;
}

/* A node that is lost after what ended the attempt is never the cause. */
static int strength_of(const struct wlbd_fault *fault)
{
	if (fault->eviction != NULL)
		return WLBD_CAUSE_EVICTED;
	if (has_ended(fault))
		return fault->is_first ? WLBD_CAUSE_FIRST_ENDED : WLBD_CAUSE_ENDED;
	if (fault->kind == WLB_FAULT_NODE_LOST)
		return fault->is_after_end ? NEVER : WLBD_CAUSE_NODE;
	if (is_killed(fault))
		return WLBD_CAUSE_KILLED;
	return fault->kind == WLB_FAULT_STEP_FAILED ? WLBD_CAUSE_STEP : WLBD_CAUSE_GONE;
}

/* ---- the sentence ---------------------------------------------------------------------------------------------------
 */

/* A client need not name rank and node. */
static void write_rank(const struct wlbd_fault *fault, char *text, size_t size)
{
	if (fault->rank >= 0 && fault->node != NULL)
		wlb_rank_end_text(text, size, fault->rank, fault->node, fault->exit_code);
	else if (fault->rank >= 0)
		wlb_text_format(text, size, "rank %d is lost", fault->rank);
	else
		wlb_text_format(text, size, "a rank%s%s is lost", fault->node != NULL ? " on " : "",
		                fault->node != NULL ? fault->node : "");
}

void wlbd_cause_sentence(const struct wlbd_fault *fault, char *text, size_t size)
{
	const char *node = fault->node;
	if (fault->eviction != NULL)
		wlb_text_format(text, size, "%s", fault->eviction);
	else if (fault->kind == WLB_FAULT_NODE_LOST)
		wlb_text_format(text, size, "%s%s is lost", node != NULL ? "node " : "a node",
		                node != NULL ? node : "");
	else if (fault->kind == WLB_FAULT_RANK_LOST)
		write_rank(fault, text, size);
	else if (fault->kind == WLB_FAULT_LAUNCHER_LOST)
		wlb_text_format(text, size, "wlb run%s%s was killed", node != NULL ? " on " : "",
		                node != NULL ? node : "");
	else if (fault->kind == WLB_FAULT_SCRIPT_LOST || fault->kind == WLB_FAULT_STEP_FAILED)
		wlb_text_format(text, size, "%s", fault->detail);
	else
		wlb_text_format(text, size, "%s%s%s", wlb_faults[fault->kind].name,
		                fault->detail[0] != '\0' ? ": " : "", fault->detail);
}

/* ---- what is stored -------------------------------------------------------------------------------------------------
 */

static void set_time(json_t *judged, const char *key, double time_s, int before_ms)
{
	json_object_set_new(judged, key, time_s != 0 ? json_real(time_s - before_ms / 1e3) : json_null());
}

json_t *wlbd_cause_judge(const struct wlbd_fault *fault)
{
	char sentence[WLBD_SENTENCE_SIZE];
	int strength = strength_of(fault);
	json_t *judged = json_object();
	wlbd_cause_sentence(fault, sentence, sizeof(sentence));
	json_object_set_new(judged, "sentence", wlb_json_text(sentence));
	if (strength != NEVER)
		json_object_set_new(judged, "strength", json_integer(strength));
	if (fault->kind == WLB_FAULT_SCRIPT_LOST)
		json_object_set_new(judged, "late_s", json_real(WLBD_SCRIPT_LATE_MS / 1e3));
	if (has_ended(fault) && fault->eviction == NULL)
		json_object_set_new(judged, "follow_s", json_real(wlbd_cause_follow_ms(fault->exit_code) / 1e3));
	if (is_killed(fault))
		set_time(judged, "killed_at", fault->since_s, 0);
	if (strength == WLBD_CAUSE_NODE)
		set_time(judged, "lost_from", fault->since_s, WLBD_ALIVE_MS);
	return judged;
}
