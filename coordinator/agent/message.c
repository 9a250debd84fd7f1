#include "coordinator/agent/message.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Reads the number at *text, which is moved to the end of the number, past a blank before the next. */
static bool take_number(const char **text, long min, long max, int *number)
{
	char *end;
	if (**text < '0' || **text > '9')
		return false;
	long value = strtol(*text, &end, 10);
	bool more = end[0] == ' ' && end[1] != '\0';
	if (value < min || value > max || (!more && *end != '\0'))
		return false;
	*number = (int)value;
	*text = more ? end + 1 : end;
	return true;
}

struct wlb_agent_message wlb_agent_message_parse(const char *text)
{
	static const struct {
		const char *name;
		enum wlb_agent_message_kind kind;
		long min, max;
	} pairs[] = {{"task ", WLB_AGENT_MESSAGE_TASK, 1, INT_MAX}, {"exit ", WLB_AGENT_MESSAGE_EXIT, 0, 255}};
	struct wlb_agent_message message = {.kind = WLB_AGENT_MESSAGE_UNKNOWN};
	if (strcmp(text, "end") == 0)
		message.kind = WLB_AGENT_MESSAGE_END;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *cursor = text + strlen(pairs[i].name);
		if (strncmp(text, pairs[i].name, strlen(pairs[i].name)) == 0 &&
		    take_number(&cursor, 0, INT_MAX, &message.rank) &&
		    take_number(&cursor, pairs[i].min, pairs[i].max, &message.value) && *cursor == '\0')
			message.kind = pairs[i].kind;
	}
	return message;
}
