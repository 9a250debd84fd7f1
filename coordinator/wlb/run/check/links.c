#include "coordinator/wlb/run/check/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlb/run/check/check_step.h"
#include "coordinator/wlb/run/stop/signals.h"

enum {
	CHECK_MS = 30000, /* for the whole check */
	AGAIN_MS = 1000,  /* until it is started again where Slurm has created no step */
	PAUSE_MS = 50,    /* between two looks at its output */
	NAMES_MAX = 4096,
};

static const char unreached_words[] = " does not reach ";
static const char reached_words[] = " reaches ";

static bool is_among(const json_t *nodes, const char *name)
{
	for (size_t i = 0; i < json_array_size(nodes); i++)
		if (strcmp(json_string_value(json_array_get(nodes, i)), name) == 0)
			return true;
	return false;
}

/* Adds the names in `words`; returns how many may still be added. */
static int read_names(char *words, const json_t *nodes, int left, json_t *names)
{
	char *rest;
	for (char *name = strtok_r(words, " ", &rest); name != NULL && left > 0; name = strtok_r(NULL, " ", &rest))
		if (is_among(nodes, name)) {
			json_array_append_new(names, json_string(name));
			left--;
		}
	return left;
}

static bool begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* Whether the line says that this node reaches the others. */
static bool says_reached(const char *line, const char *node)
{
	return begins_with(line, node) && begins_with(line + strlen(node), reached_words);
}

static bool is_line_of_any(const json_t *nodes, const char *line)
{
	for (size_t i = 0; i < json_array_size(nodes); i++)
		if (says_reached(line, json_string_value(json_array_get(nodes, i))))
			return true;
	return false;
}

json_t *wlb_run_read_links(char *text, const json_t *nodes)
{
	json_t *unreached = json_object();
	int left = NAMES_MAX;
	bool is_known = false;
	char *rest;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		is_known = is_known || is_line_of_any(nodes, line);
		char *words = strstr(line, unreached_words);
		if (words == NULL)
			continue;
		*words = '\0';
		if (!is_among(nodes, line))
			continue;
		json_t *names = json_array();
		left = read_names(words + strlen(unreached_words), nodes, left, names);
		json_object_set_new(unreached, line, names);
		is_known = true;
	}
	if (is_known)
		return unreached;
	json_decref(unreached);
	return NULL;
}

static bool has_line(const char *text, const char *node)
{
	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (says_reached(line, node))
			return true;
	}
	return false;
}

/* Adds a name to the text "n1, n3", where it fits. */
static void add_name(char *names, size_t size, const char *name)
{
	size_t length = strlen(names);
	int added = snprintf(names + length, size - length, "%s%s", length > 0 ? ", " : "", name);
	if (added < 0 || (size_t)added >= size - length)
		names[length] = '\0';
}

enum wlb_link_state wlb_run_link_state(char *text, const json_t *nodes, const char *node, char *names, size_t size)
{
	bool is_said = has_line(text, node);
	json_t *unreached = wlb_run_read_links(text, nodes);
	const json_t *own = json_object_get(unreached, node);
	*names = '\0';
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const char *other = json_string_value(json_array_get(nodes, i));
		if (is_among(own, other) || is_among(json_object_get(unreached, other), node))
			add_name(names, size, other);
	}
	json_decref(unreached);
	if (*names != '\0')
		return WLB_LINK_UNREACHED;
	return is_said ? WLB_LINK_REACHED : WLB_LINK_UNKNOWN;
}

/* Returns false where the check did not end in time, or the run has to end. */
static bool has_ended(struct wlb_run *run, struct wlb_check_step *step)
{
	enum wlb_check_progress progress;
	while ((progress = wlb_check_step_poll(step)) == WLB_CHECK_STEP_RUNS)
		if (!wlb_run_pause(run, PAUSE_MS))
			return false;
	return progress == WLB_CHECK_STEP_ENDED;
}

/* Runs wlb-check-links once. Returns what its ranks have printed, "" where Slurm has created no step, as for some
 * seconds after slurmctld was unavailable; the caller frees it. Returns NULL with the reason where it has not ended by
 * then.
 */
static char *check_once(struct wlb_run *run, const json_t *nodes, int64_t until_ms, struct wlb_error *error)
{
	static const char *const words[] = {"check-links", NULL};
	const struct wlb_check_command command = {.nodes = nodes,
	                                          .mpi = "pmix",
	                                          .words = words,
	                                          .gpus_per_node = run->job.gpus_per_node,
	                                          .limit_ms = wlb_clock_left_ms(until_ms)};
	struct wlb_check_step step;
	char *text;
	if (wlb_clock_left_ms(until_ms) == 0) {
		wlb_fail(error, "the check of the links printed nothing within %d s", CHECK_MS / 1000);
		return NULL;
	}
	if (wlb_check_step_start(&run->signals_before, &command, &step, error) != 0)
		return NULL;
	bool is_whole = has_ended(run, &step);
	wlb_check_step_end(&step, &text);
	if (is_whole)
		return text;
	free(text);
	wlb_fail(error, "the check of the links did not end within %d s", CHECK_MS / 1000);
	return NULL;
}

json_t *wlb_run_check_links(struct wlb_run *run, const json_t *nodes, struct wlb_error *error)
{
	int64_t until_ms = wlb_clock_ms() + CHECK_MS;
	char *text = check_once(run, nodes, until_ms, error);
	while (text != NULL && text[0] == '\0' && wlb_run_pause(run, AGAIN_MS)) {
		free(text);
		text = check_once(run, nodes, until_ms, error);
	}
	json_t *unreached = text != NULL ? wlb_run_read_links(text, nodes) : NULL;
	if (text != NULL && unreached == NULL)
		wlb_fail(error, "no line of their check says which nodes a node reaches");
	free(text);
	return unreached;
}
