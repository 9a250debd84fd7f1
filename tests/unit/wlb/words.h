/* Splits a command's line at blanks, for tests that take words. */
#ifndef TESTS_UNIT_WLB_WORDS_H
#define TESTS_UNIT_WLB_WORDS_H

#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 48 };

struct words {
	char text[2048], *list[WORDS_MAX + 1];
};

/* Returns words->list, ended by NULL. "~" in a word is a blank of it. */
static inline char **split(struct words *words, const char *text)
{
	int count = 0;
	snprintf(words->text, sizeof(words->text), "%s", text);
	for (char *word = strtok(words->text, " "); word != NULL && count < WORDS_MAX; word = strtok(NULL, " ")) {
		for (char *blank = word; (blank = strchr(blank, '~')) != NULL;)
			*blank = ' ';
		words->list[count++] = word;
	}
	words->list[count] = NULL;
	return words->list;
}

#endif
