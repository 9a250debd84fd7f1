/* A folder for the files of a fuzz target, removed at exit. A target that cannot go on aborts. */
#ifndef TESTS_FUZZ_SCRATCH_H
#define TESTS_FUZZ_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/* FOLDER/NAME; valid until the tenth call after this one. */
const char *scratch_path(const char *name);
/* Writes FOLDER/NAME; its path. */
const char *scratch_write(const char *name, const void *data, size_t bytes);
/* Reads every byte, so that the sanitizer sees whether it may be read. */
void scratch_touch(const void *data, size_t bytes);

/* Aborts, for libFuzzer to report, when something that must always hold does not. */
#define must(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			scratch_broken(#condition, __FILE__, __LINE__);                                                \
	} while (0)

_Noreturn void scratch_broken(const char *condition, const char *file, int line);

/* What libFuzzer calls; here so that it has a prototype. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Splits a text at its line ends into at most `most` words, behind which *words has a NULL; returns their number. */
int scratch_lines(char *text, char **words, int most);

#endif
