#include "coordinator/wlb/run/check/link_times.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 4096 };

static const char words[] = " exchanges ";
static const char with[] = " bytes with ";

/* A time that a rank of a check has printed of a pair. */
struct pair_time {
	double seconds;
	const char *other;
};

struct pair_times {
	int count;
	struct pair_time list[PAIRS_MAX];
};

struct reading {
	const json_t *nodes;
	const char *node;
	int bytes; /* of the node's own line */
	struct pair_times own, others;
};

/* Returns the node whose name the text begins with, before `end`; NULL where it is none of the check. */
static const char *read_node(const json_t *nodes, const char *text, const char *end)
{
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const char *name = json_string_value(json_array_get(nodes, i));
		size_t length = strlen(name);
		if (strncmp(text, name, length) == 0 && strncmp(text + length, end, strlen(end)) == 0)
			return name;
	}
	return NULL;
}

static void add(struct pair_times *times, double seconds, const char *other)
{
	if (times->count < PAIRS_MAX && seconds > 0.0)
		times->list[times->count++] = (struct pair_time){seconds, other};
}

/* Reads "NODE in X s, NODE in X s", up to the end of the line. */
static void read_pairs(struct reading *reading, const char *first, const char *text)
{
	static const char in[] = " in ", next[] = " s, ";
	for (;;) {
		const char *second = read_node(reading->nodes, text, in);
		const char *number = strstr(text, in);
		if (number == NULL)
			return;
		char *end;
		double seconds = strtod(number + strlen(in), &end);
		if (strncmp(end, " s", strlen(" s")) != 0)
			return; /* a line that was cut */
		if (second != NULL && first != reading->node && second != reading->node)
			add(&reading->others, seconds, second);
		else if (second != NULL)
			add(&reading->own, seconds, first == reading->node ? second : first);
		if (strncmp(end, next, strlen(next)) != 0)
			return;
		text = end + strlen(next);
	}
}

/* Returns what follows the number of bytes of a line, and sets both; NULL where the line says no times. */
static const char *read_begin(const struct reading *reading, const char *line, const char **first, int *bytes)
{
	char *end;
	*first = read_node(reading->nodes, line, words);
	if (*first == NULL)
		return NULL;
	long number = strtol(line + strlen(*first) + strlen(words), &end, 10);
	if (number < 1 || number > INT_MAX || strncmp(end, with, strlen(with)) != 0)
		return NULL;
	*bytes = (int)number;
	return end + strlen(with);
}

/* Reads the line of a node, or the size of the messages of the node's own. */
static void read_line(struct reading *reading, const char *line, bool only_size)
{
	const char *first;
	int bytes;
	const char *pairs = read_begin(reading, line, &first, &bytes);
	if (pairs != NULL && only_size && first == reading->node)
		reading->bytes = bytes;
	if (pairs != NULL && !only_size && bytes == reading->bytes)
		read_pairs(reading, first, pairs);
}

static int read_lines(struct reading *reading, const char *text, bool only_size)
{
	char *lines = strdup(text), *rest;
	if (lines == NULL)
		return -1;
	for (char *line = strtok_r(lines, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		read_line(reading, line, only_size);
	free(lines);
	return 0;
}

static int compare(const void *a, const void *b)
{
	double difference = ((const struct pair_time *)a)->seconds - ((const struct pair_time *)b)->seconds;
	return difference < 0.0 ? -1 : difference > 0.0;
}

static void sort(struct pair_times *times)
{
	qsort(times->list, (size_t)times->count, sizeof(times->list[0]), compare);
}

bool wlb_run_read_link_times(const char *text, const json_t *nodes, const char *node, struct wlb_link_times *times)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	bool is_known = false;
	if (reading == NULL)
		return false;
	reading->nodes = nodes;
	for (size_t i = 0; i < json_array_size(nodes); i++)
		if (strcmp(json_string_value(json_array_get(nodes, i)), node) == 0)
			reading->node = json_string_value(json_array_get(nodes, i));
	if (read_lines(reading, text, true) == 0 && read_lines(reading, text, false) == 0 && reading->own.count > 0 &&
	    reading->others.count > 0) {
		sort(&reading->own);
		sort(&reading->others);
		/* Where two times are in the middle, takes the one with which fewer nodes fail. */
		const struct pair_time *own = &reading->own.list[(reading->own.count - 1) / 2];
		*times = (struct wlb_link_times){reading->bytes, own->seconds, own->other,
		                                 reading->others.list[reading->others.count / 2].seconds};
		is_known = true;
	}
	free(reading);
	return is_known;
}

bool wlb_run_link_is_slow(const struct wlb_link_times *times)
{
	return times->own_s > WLB_LINK_SLOWER * times->others_s && times->own_s > times->others_s + WLB_LINK_SLOWER_S;
}
