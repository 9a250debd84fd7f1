#include "coordinator/wlb/output/error_text.h"

#include <stdbool.h>
#include <stdio.h>

#include "coordinator/wlb/output/reply_fields.h"

void wlb_error_text(const json_t *error, char *text, size_t size)
{
	const char *line = wlb_field_text(error, "text", ""), *cause = wlb_field_text(error, "cause", "");
	const json_t *rank = json_object_get(error, "rank");
	bool follows = json_is_true(json_object_get(error, "is_consequence"));
	char who[32] = "";
	text[0] = '\0';
	if (*line == '\0')
		return;
	if (json_is_integer(rank))
		snprintf(who, sizeof(who), "rank %lld: ", (long long)json_integer_value(rank));
	snprintf(text, size, "%s%s%s%s%s%s", who, line, *cause != '\0' ? " (because of " : "", cause,
	         *cause != '\0' ? ")" : "",
	         follows ? "; a consequence of the end of another process, whose error was not found" : "");
}
