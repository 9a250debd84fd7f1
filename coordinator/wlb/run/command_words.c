#include "coordinator/wlb/run/command_words.h"

#include <string.h>

int wlb_run_train_word(char *const *words)
{
	for (int i = 0; words[i] != NULL && words[i + 1] != NULL; i++) {
		const char *slash = strrchr(words[i], '/');
		if (strcmp(slash != NULL ? slash + 1 : words[i], "wlb-worker") == 0 &&
		    strcmp(words[i + 1], "train") == 0)
			return i + 1;
	}
	return -1;
}

const char *wlb_run_word_value(char *const *words, const char *name)
{
	size_t length = strlen(name);
	for (int i = 0; words[i] != NULL; i++)
		if (strncmp(words[i], name, length) == 0) {
			if (words[i][length] == '=')
				return words[i] + length + 1;
			if (words[i][length] == '\0')
				return words[i + 1];
		}
	return NULL;
}
