/* A folder for one test, and files in it. Failures end the test. */
#ifndef TESTS_UNIT_DATA_FIXTURE_H
#define TESTS_UNIT_DATA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* cmocka set-up and tear-down: *state is the path of a new folder, removed afterwards. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* FOLDER/NAME; valid until the tenth call after this one. */
const char *fixture_path(void **state, const char *name);
/* Writes FOLDER/NAME; its path. */
const char *fixture_write(void **state, const char *name, const void *data, size_t bytes);
const char *fixture_write_text(void **state, const char *name, const char *text);
/* The whole file, the caller frees. */
char *fixture_read(const char *path, size_t *bytes);
/* How many entries the folder has, hidden ones too. */
int fixture_entries(const char *path);
int fixture_exists(const char *path);

/* The message must hold the text. */
#define assert_says(message, text)                                                                                     \
	do {                                                                                                           \
		if (strstr(message, text) == NULL)                                                                     \
			fail_msg("expected '%s' in: %s", text, message);                                               \
	} while (0)

#endif
