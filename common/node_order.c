#include "common/node_order.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads the number at *at, which moves past it and the comma behind it; -1 where there is none below `count`. */
static int read_number(const char **cursor, int count, bool is_last)
{
	char *end;
	if (!isdigit((unsigned char)**cursor))
		return -1;
	long number = strtol(*cursor, &end, 10);
	if (number >= count || *end != (is_last ? '\0' : ','))
		return -1;
	*cursor = end + 1;
	return (int)number;
}

int *wlb_node_order_parse(const char *text, int count)
{
	if (text == NULL || count < 1)
		return NULL;
	int *order = calloc((size_t)count, sizeof(*order));
	char *seen = calloc((size_t)count, 1);
	bool is_read = order != NULL && seen != NULL;
	for (int i = 0; is_read && i < count; i++) {
		int number = read_number(&text, count, i == count - 1);
		is_read = number >= 0 && seen[number] == 0;
		if (is_read) {
			order[i] = number;
			seen[number] = 1;
		}
	}
	free(seen);
	if (is_read)
		return order;
	free(order);
	return NULL;
}

char *wlb_node_order_format(const int *order, int count)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (out == NULL)
		return NULL;
	for (int i = 0; i < count; i++)
		fprintf(out, "%s%d", i > 0 ? "," : "", order[i]);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
