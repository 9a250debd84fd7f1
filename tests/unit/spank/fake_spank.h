/* SPANK's functions for tests: what the plugin logs, registers and sets is kept and can be looked at. */
#ifndef TESTS_UNIT_SPANK_FAKE_SPANK_H
#define TESTS_UNIT_SPANK_FAKE_SPANK_H

/* The last line logged; "" at the start and after fake_spank_reset(). */
const char *fake_spank_logged(void);

/* The job's environment: its value, or NULL. */
const char *fake_spank_env(const char *name);

/* Options registered so far. */
int fake_spank_options(void);

/* Forgets all of it. */
void fake_spank_reset(void);

#endif
