#include "coordinator/wlb/run/rules/slurm_end.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libwlb/wlb.h"

/* slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 DUE TO TIME LIMIT ***
 * slurmstepd-n1: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***
 * [2026-11-20T12:00:00.123] error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 DUE to SIGNAL Killed ***
 * The last form is that of newer releases. Returns where " CANCELLED " begins, or NULL. */
static const char *find_cancelled(const char *line)
{
	static const char *const begins[] = {" error: *** STEP ", " error: *** JOB "};
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		const char *at = strstr(line, begins[i]);
		if (at == NULL || !isdigit((unsigned char)at[strlen(begins[i])]))
			continue;
		at += strlen(begins[i]);
		at += strcspn(at, " ");
		if (strncmp(at, " ON ", 4) == 0 && (at = strstr(at, " CANCELLED ")) != NULL)
			return at;
	}
	return NULL;
}

bool wlb_slurm_end_is_cancelled(const char *line)
{
	return find_cancelled(line) != NULL;
}

/* Copies the words after "DUE TO ", as "time limit"; "" where there are none. */
static void copy_cause(const char *at, char *cause, size_t size)
{
	static const char begin[] = " DUE TO ";
	const char *due = strcasestr(at, begin), *end;
	size_t length = 0;
	if (due != NULL && (end = strstr(due += strlen(begin), " ***")) != NULL)
		for (; due < end && length + 1 < size; due++)
			cause[length++] = (char)tolower((unsigned char)*due);
	cause[length] = '\0';
}

static bool read_cancelled(struct wlb_slurm_end *end, const char *line)
{
	char cause[64];
	const char *at = find_cancelled(line);
	if (at == NULL)
		return false;
	copy_cause(at, cause, sizeof(cause));
	if (strncmp(cause, "node failure", 12) == 0 || strcmp(cause, "task failure") == 0)
		return false;
	*end = (struct wlb_slurm_end){.known = true,
	                              .is_certain = cause[0] != '\0' && strncmp(cause, "signal ", 7) != 0};
	wlb_text_format(end->why, sizeof(end->why), "Slurm cancelled the step%s%s", cause[0] != '\0' ? ": " : "",
	                cause);
	return true;
}

/* A line of Slurm may follow the beginning of a task's line, such as a progress bar. */
bool wlb_slurm_end_read(struct wlb_slurm_end *end, const char *line)
{
	static const char waited[] = "srun: First task exited ";
	const char *at = strstr(line, waited);
	int wait_s;
	if (at != NULL && sscanf(at + strlen(waited), "%9ds ago", &wait_s) == 1) {
		*end = (struct wlb_slurm_end){.known = true, .is_certain = true};
		snprintf(end->why, sizeof(end->why),
		         "srun ended the tasks that were left %d s after the first had ended, as its --wait or "
		         "SLURM_WAIT says: leave it out, or give --wait=0",
		         wait_s);
		return true;
	}
	if (strstr(line, "srun: forcing job termination") != NULL) {
		*end = (struct wlb_slurm_end){
			.known = true, .is_certain = true, .why = "srun was told by a signal to end its tasks"};
		return true;
	}
	return read_cancelled(end, line);
}
