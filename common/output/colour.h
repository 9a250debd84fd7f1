/* Colours of a terminal. */
#ifndef COMMON_OUTPUT_COLOUR_H
#define COMMON_OUTPUT_COLOUR_H

#include <stdbool.h>
#include <stdio.h>

/* Whether standard output shows colours: it is a terminal other than TERM=dumb, and NO_COLOR is empty or not set. */
bool wlb_colour_shown(void);

/* Returns the colour of the state of a run, an attempt or a node, as the parameter of the terminal's escape sequence
 * (ECMA-48, SGR): "31" for red; NULL for a state without one, and for any other text. */
const char *wlb_colour_of_state(const char *state);

/* Prints the state, with is_shown in its colour. */
void wlb_colour_print_state(const char *state, bool is_shown, FILE *out);

#endif
