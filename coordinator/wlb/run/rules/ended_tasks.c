#include "coordinator/wlb/run/rules/ended_tasks.h"

#include <stdlib.h>

enum { WORD_BITS = 64 };

void wlb_ended_tasks_begin(struct wlb_ended_tasks *ended, int tasks)
{
	ended->tasks = tasks;
	ended->bits = calloc((size_t)tasks / WORD_BITS + 1, sizeof(*ended->bits));
}

void wlb_ended_tasks_free(struct wlb_ended_tasks *ended)
{
	free(ended->bits);
	ended->bits = NULL;
}

void wlb_ended_tasks_note_range(struct wlb_ended_tasks *ended, int first, int count)
{
	for (int task = first; ended->bits != NULL && task < ended->tasks && task - first < count; task++)
		ended->bits[task / WORD_BITS] |= UINT64_C(1) << (task % WORD_BITS);
}

/* Reads a number below that of the tasks, or the number of the tasks where it is greater. */
static bool take_number(const struct wlb_ended_tasks *ended, const char **at, int *number)
{
	char *end;
	if (**at < '0' || **at > '9')
		return false;
	long value = strtol(*at, &end, 10);
	*number = value < ended->tasks ? (int)value : ended->tasks;
	*at = end;
	return true;
}

void wlb_ended_tasks_note(struct wlb_ended_tasks *ended, const char *list)
{
	int first, last;
	while (take_number(ended, &list, &first)) {
		last = first;
		if (*list == '-') {
			list++;
			if (!take_number(ended, &list, &last))
				return;
		}
		wlb_ended_tasks_note_range(ended, first, last - first + 1);
		if (*list != ',')
			return;
		list++;
	}
}

bool wlb_ended_tasks_has_other(const struct wlb_ended_tasks *ended)
{
	for (int task = 0; ended->bits != NULL && task < ended->tasks; task++)
		if ((ended->bits[task / WORD_BITS] >> (task % WORD_BITS) & 1) == 0)
			return true;
	return false;
}
