#include "coordinator/agent/words.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The number at *text, which is moved behind it and the blank that may follow. */
static bool take_number(const char **text, long least, long most, int *number)
{
	char *end;
	if (**text < '0' || **text > '9')
		return false;
	long value = strtol(*text, &end, 10);
	if (value < least || value > most || (*end != ' ' && *end != '\0'))
		return false;
	*number = (int)value;
	*text = *end == ' ' ? end + 1 : end;
	return true;
}

struct wlb_agent_word wlb_agent_word_parse(const char *text)
{
	static const struct {
		const char *name;
		enum wlb_agent_word_kind kind;
		long least, most;
	} pairs[] = {{"task ", WLB_AGENT_WORD_TASK, 1, INT_MAX}, {"exit ", WLB_AGENT_WORD_EXIT, 0, 255}};
	struct wlb_agent_word word = {.kind = WLB_AGENT_WORD_UNKNOWN};
	if (strcmp(text, "end") == 0)
		word.kind = WLB_AGENT_WORD_END;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *at = text + strlen(pairs[i].name);
		if (strncmp(text, pairs[i].name, strlen(pairs[i].name)) == 0 &&
		    take_number(&at, 0, INT_MAX, &word.rank) &&
		    take_number(&at, pairs[i].least, pairs[i].most, &word.value) && *at == '\0')
			word.kind = pairs[i].kind;
	}
	return word;
}
