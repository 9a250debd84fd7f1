/* What the terminal can show. */
#ifndef COMMON_OUTPUT_TERMINAL_H
#define COMMON_OUTPUT_TERMINAL_H

#include <stdbool.h>

/* Columns of standard output; 72 where it is no terminal. */
int wlb_terminal_columns(void);

/* Whether it shows Unicode, by the locale of the environment. */
bool wlb_terminal_unicode(void);

#endif
