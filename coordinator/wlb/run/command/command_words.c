#include "coordinator/wlb/run/command/command_words.h"

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

/* Returns the value in the word, or `next` where the word is the option alone; NULL: it is another word. */
static const char *value_in(const char *word, const char *next, char letter, const char *name)
{
	size_t length = strlen(name);
	if (strncmp(word, name, length) == 0 && (word[length] == '=' || word[length] == '\0'))
		return word[length] == '=' ? word + length + 1 : next;
	if (word[0] == '-' && word[1] == letter)
		return word[2] != '\0' ? word + 2 : next;
	return NULL;
}

const char *wlb_run_srun_value(const struct wlb_run_options *options, char letter, const char *name)
{
	const char *value = NULL;
	for (int i = 0; i < options->srun_arg_count; i++) {
		const char *next = i + 1 < options->srun_arg_count ? options->srun_args[i + 1] : NULL;
		const char *found = value_in(options->srun_args[i], next, letter, name);
		value = found != NULL ? found : value;
	}
	return value;
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

bool wlb_run_has_word(char *const *words, const char *word)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}
