/* What the terminal can show. */
#ifndef COMMON_OUTPUT_TERMINAL_H
#define COMMON_OUTPUT_TERMINAL_H

#include <stdbool.h>

/* Columns of standard output; 72 where it is no terminal, or one of less than 40. */
int wlb_terminal_columns(void);

/* Columns of standard output; 0 where it is no terminal, or one that does not say. */
int wlb_terminal_width(void);

/* Whether it shows Unicode, by the locale of the environment. */
bool wlb_terminal_unicode(void);

#endif
