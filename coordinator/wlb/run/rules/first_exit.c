#include "coordinator/wlb/run/rules/first_exit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rank_end.h"
#include "libwlb/wlb.h"

/* ---- fences and launches ---------------------------------------------------------------------------------------- */

/* Whether the list has the name, of that length. */
static bool has_name(const char *list, const char *name, size_t length)
{
	for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
		if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return true;
	return false;
}

static void add_node(struct wlb_fence_timeout *timeout, const char *node)
{
	size_t used = strlen(timeout->nodes), length = strlen(node);
	if (has_name(timeout->nodes, node, length))
		return;
	if (used + length + 2 > sizeof(timeout->nodes))
		timeout->has_more = true;
	else
		snprintf(timeout->nodes + used, sizeof(timeout->nodes) - used, "%s%s", used > 0 ? "," : "", node);
}

bool wlb_fence_timeout_read(struct wlb_fence_timeout *timeout, const char *line)
{
	char function[64], node[256];
	const char *at = strstr(line, "mpi/pmix");
	if (at == NULL || strstr(at, ": collective timeout seq=") == NULL ||
	    sscanf(at, "mpi/pmix%*[^:]: %63[^:]: %255[^] ,[:] [", function, node) != 2)
		return false;
	timeout->known = true;
	add_node(timeout, node);
	return true;
}

bool wlb_launch_failure_read(struct wlb_launch_failure *failure, const char *line)
{
	struct wlb_launch_failure found = {.known = true, .rank = -1};
	/* Not only at the beginning of the line: a task may have died before it ended its own line. */
	const char *at = strstr(line, "srun: error: ");
	if (at == NULL)
		return false;
	if (sscanf(at, "srun: error: task %9d launch failed: %127[^\n]", &found.rank, found.why) != 2 ||
	    found.rank < 0) {
		found.rank = -1;
		if (sscanf(at, "srun: error: Task launch for %*s failed on node %255[^: ]: %127[^\n]", found.node,
		           found.why) != 2)
			return false;
	}
	*failure = found;
	return true;
}

/* ---- ends of tasks ---------------------------------------------------------------------------------------------- */

/* Moves *at past `text` if it is at that place. */
static bool skip(const char **at, const char *text)
{
	size_t length = strlen(text);
	if (strncmp(*at, text, length) != 0)
		return false;
	*at += length;
	return true;
}

static bool take_number(const char **at, long most, int *number)
{
	char *end;
	if (**at < '0' || **at > '9')
		return false;
	long value = strtol(*at, &end, 10);
	if (value > most)
		return false;
	*number = (int)value;
	*at = end;
	return true;
}

/* Reads the first name of a host list that ends with ':'; of "n[08-10,12]:" it is "n08". */
static bool take_node(const char **at, char *node, size_t size)
{
	const char *end = strchr(*at, ':');
	size_t length = 0;
	bool inside = false, skipping = false;
	if (end == NULL)
		return false;
	for (const char *c = *at; c < end && (inside || *c != ','); c++) {
		if (*c == ' ' || length + 1 == size)
			return false;
		if (*c == '[' || *c == ']')
			inside = *c == '[';
		skipping = inside && (skipping || *c == '-' || *c == ',');
		if (*c != '[' && *c != ']' && !skipping)
			node[length++] = *c;
	}
	node[length] = '\0';
	*at = end;
	return length > 0;
}

/* Returns the signal of that name: srun prints strsignal(), which has no inverse. */
static int signal_named(const char *text)
{
	const char *core = strstr(text, " (core dumped)");
	size_t length = core != NULL ? (size_t)(core - text) : strlen(text);
	if (strncmp(text, "Out Of Memory", length) == 0 && length == strlen("Out Of Memory"))
		return SIGKILL;
	for (int number = 1; number <= SIGRTMAX; number++) {
		const char *name = strsignal(number);
		if (strlen(name) == length && strncmp(name, text, length) == 0)
			return number;
	}
	return 0;
}

static bool take_end(const char *at, struct wlb_first_exit *first)
{
	if (skip(&at, "Exited with exit code "))
		return take_number(&at, 255, &first->exit_code) && *at == '\0' && first->exit_code > 0;
	first->signal = signal_named(at);
	first->exit_code = 128 + first->signal;
	return first->signal > 0;
}

/* Reads the first rank of "5" or "0-3,7". */
static bool take_ranks(const char **at, int *rank)
{
	if (!skip(at, ": task ") && !skip(at, ": tasks "))
		return false;
	if (!take_number(at, 1 << 30, rank))
		return false;
	*at += strspn(*at, "0123456789-,");
	return skip(at, ": ");
}

static bool has_any(const char *line, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(line, texts[i]) != NULL)
			return true;
	return false;
}

/* srun: error: Unable to create step for job 12: Requested nodes are busy
 * srun: error: Unable to confirm allocation for job 12: Unable to contact slurm controller (connect failure) */
static void read_no_step(struct wlb_first_exit_scan *scan)
{
	static const char create[] = "srun: error: Unable to create step for job ";
	static const char confirm[] = "srun: error: Unable to confirm allocation for job ";
	static const char *const passing[] = {": Memory required by task is not available",
	                                      ": Requested nodes are busy"};
	/* Also where a munged does not answer that slurmctld needs, or srun. */
	static const char *const unavailable[] = {": Unable to contact slurm controller",
	                                          ": Socket timed out",
	                                          ": Zero Bytes were transmitted or received",
	                                          " in standby mode",
	                                          ": Unexpected missing socket error",
	                                          ": Protocol authentication error",
	                                          ": Communication connection failure",
	                                          ": Communication shutdown failure",
	                                          ": Message send failure",
	                                          ": Message receive failure"};
	bool is_create = strncmp(scan->line, create, strlen(create)) == 0;
	if (!is_create && strncmp(scan->line, confirm, strlen(confirm)) != 0)
		return;
	if (has_any(scan->line, unavailable, sizeof(unavailable) / sizeof(unavailable[0])))
		scan->no_step = scan->is_slurmctld_unavailable = true;
	else if (is_create && has_any(scan->line, passing, sizeof(passing) / sizeof(passing[0])))
		scan->no_step = true;
}

/* A task gets SIGPIPE when it writes to a task that has ended, and its end may be reported before the end of that task.
 * SIGTERM and SIGKILL come from Slurm afterwards. Once srun ends the tasks, one may exit for that reason, but not fail
 * in its own code. */
static bool explains_broken_pipe(const struct wlb_first_exit *end, bool are_ended)
{
	if (wlb_rank_end_is_own(end->exit_code))
		return true;
	return !are_ended && wlb_rank_end_strength(end->exit_code) != WLB_END_BROKEN_PIPE &&
	       !wlb_rank_end_may_be_slurms(end->exit_code);
}

static bool is_broken_pipe(const struct wlb_first_exit_scan *scan)
{
	return scan->first.known && wlb_rank_end_strength(scan->first.exit_code) == WLB_END_BROKEN_PIPE;
}

/* The words alone mean nothing: a task may log such an error of its own. A line of Slurm may follow the beginning of a
 * task's line, such as a progress bar. */
static bool is_ended_by_others(const char *line)
{
	static const char *const of_srun[] = {"srun: error: Node failure on ", "srun: Force Terminated "};
	return wlb_slurm_end_is_cancelled(line) || has_any(line, of_srun, sizeof(of_srun) / sizeof(of_srun[0]));
}

static void keep_error(struct wlb_first_exit_scan *scan)
{
	static const char *const begins[] = {"srun: error: ", "srun: fatal: "};
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(scan->line, begins[i], strlen(begins[i])) == 0)
			wlb_text_show(scan->last_error, sizeof(scan->last_error), scan->line + strlen(begins[i]));
}

/* slurmstepd-n1: error: wlb: ended 2 processes that ranks had left on n1
 * spank/agent.c writes it. */
static void read_ended_processes(struct wlb_first_exit_scan *scan)
{
	static const char begin[] = " error: wlb: ended ";
	const char *at = strstr(scan->line, begin);
	int count;
	if (at == NULL || sscanf(at + strlen(begin), "%6d process", &count) != 1 || count < 1 ||
	    scan->ended_processes > 1000000)
		return;
	scan->ended_processes += count;
	scan->ended_on_nodes++;
}

static void read_line(struct wlb_first_exit_scan *scan)
{
	struct wlb_first_exit first = {.known = true};
	bool has_ended = scan->ignore_rest || scan->first.known;
	if (((!has_ended && !scan->step_aborted) || scan->fence.known) &&
	    wlb_fence_timeout_read(&scan->fence, scan->line))
		scan->ignore_rest = true;
	if (!has_ended && !scan->ignore_rest && wlb_launch_failure_read(&scan->launch, scan->line))
		scan->ignore_rest = true;
	/* Not only at the beginning of the line: a task may have died before it ended its own line. */
	const char *at = strstr(scan->line, "srun: error: ");
	if (!has_ended && !scan->ignore_rest && wlb_slurm_end_read(&scan->slurm_end, scan->line))
		scan->ignore_rest = true;
	scan->ignore_rest = scan->ignore_rest || is_ended_by_others(scan->line);
	scan->step_aborted = scan->step_aborted || strstr(scan->line, "srun: Job step aborted: ") != NULL;
	scan->step_signals += !scan->step_aborted && !scan->first.known && wlb_slurm_end_is_cancelled(scan->line);
	if (!scan->ignore_rest)
		read_no_step(scan);
	/* Of tasks that cannot execute the command the first may have been reported. */
	wlb_refusal_read(&scan->refusal, scan->line);
	read_ended_processes(scan);
	if (!has_ended)
		keep_error(scan);
	bool are_ended = scan->ignore_rest || scan->step_aborted;
	if (at == NULL || !skip(&at, "srun: error: ") || !take_node(&at, first.node, sizeof(first.node)))
		return;
	const char *ranks = at + strcspn(at, "0123456789");
	if (!take_ranks(&at, &first.rank) || !take_end(at, &first))
		return;
	wlb_ended_tasks_note(&scan->ended, ranks);
	if (!scan->slurm_end.is_certain && !wlb_rank_end_may_be_slurms(first.exit_code))
		scan->slurm_end.known = false;
	if (are_ended && !is_broken_pipe(scan))
		return;
	if (is_broken_pipe(scan) && !explains_broken_pipe(&first, are_ended))
		return;
	scan->first = first;
	scan->ignore_rest = scan->ignore_rest || !is_broken_pipe(scan);
}

void wlb_first_exit_feed(struct wlb_first_exit_scan *scan, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != '\n') {
			if (scan->length < sizeof(scan->line)) /* a byte 0 would hide the words that follow it */
				scan->line[scan->length++] = bytes[i] != '\0' ? bytes[i] : ' ';
			continue;
		}
		if (scan->length < sizeof(scan->line)) {
			scan->line[scan->length] = '\0';
			read_line(scan);
		}
		scan->length = 0;
	}
}
