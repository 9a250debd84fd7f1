#include "common/output/colour.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RED "31"
#define GREEN "32"
#define YELLOW "33"
#define CYAN "36"

bool wlb_colour_shown(void)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
	return isatty(STDOUT_FILENO) && (none == NULL || *none == '\0') &&
	       (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

const char *wlb_colour_of_state(const char *state)
{
	static const struct {
		const char *state, *colour;
	} states[] = {{"running", CYAN}, {"starting", YELLOW},  {"restarting", YELLOW}, {"complete", GREEN},
	              {"failed", RED},   {"out_of_nodes", RED}, {"lost", RED},          {"cancelled", YELLOW},
	              {"avoided", RED},  {"suspected", YELLOW}, {"healthy", GREEN},     {"confirmed", RED},
	              {"cause", RED}};
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(states[i].state, state) == 0)
			return states[i].colour;
	return NULL;
}

void wlb_colour_print_state(const char *state, bool is_shown, FILE *out)
{
	const char *colour = is_shown ? wlb_colour_of_state(state) : NULL;
	if (colour != NULL)
		fprintf(out, "\033[%sm%s\033[0m", colour, state);
	else
		fputs(state, out);
}
