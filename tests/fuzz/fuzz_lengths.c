/* Any text of lengths, any index of a dataset, any generator: refused with a message, or lengths that add up. */
#include <stdlib.h>
#include <string.h>

#include "planner/lengths_file.h"
#include "planner/lengths_index.h"
#include "tests/fuzz/scratch.h"

static void check(int rc, struct wlb_length_list *list, const struct wlb_error *error)
{
	int64_t total = 0;
	for (size_t i = 0; i < list->count; i++) {
		must(list->tokens[i] >= 0);
		total += list->tokens[i];
	}
	must(total == list->total_tokens);
	must(rc == 0 || error->message[0] != '\0');
	wlb_length_list_free(list);
}

/* A generator may be asked for more than a fuzz run has time for: 6e7, or what it gives where nothing is said. */
static int takes_long(const char *how)
{
	const char *count = strstr(how, "count=");
	if (count == NULL)
		return 1;
	for (; count != NULL; count = strstr(count + 1, "count="))
		if (!(strtod(count + strlen("count="), NULL) < 1000.0))
			return 1;
	return 0;
}

static void check_generator(const char *how)
{
	struct wlb_length_list list = {0};
	struct wlb_error error = {0};
	if (takes_long(how))
		return;
	check(wlb_length_list_generate(how, &list, &error), &list, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_length_list list = {0};
	struct wlb_error error = {0};
	check(wlb_length_list_parse_index(data, bytes, "x.idx", &list, &error), &list, &error);
	char *text = malloc(bytes + 1);
	must(text != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	check_generator(text);
	FILE *in = bytes > 0 ? fmemopen(text, bytes, "r") : NULL;
	if (in != NULL) {
		error.message[0] = '\0';
		check(wlb_length_list_read_text(in, "x", &list, &error), &list, &error);
		fclose(in);
	}
	free(text);
	return 0;
}
