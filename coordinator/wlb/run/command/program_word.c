#include "coordinator/wlb/run/command/program_word.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Programs that run the command after their own options: the word that follows the program, NULL where none has to, and
 * the letters of the options whose value is a word of its own. */
static const struct wrapper {
	const char *name, *next, *valued;
} wrappers[] = {
	{"env", NULL, "uCS"},        {"nice", NULL, "n"},    {"ionice", NULL, "cn"},      {"nohup", NULL, ""},
	{"setsid", NULL, ""},        {"time", NULL, "fo"},   {"timeout", NULL, "ks"},     {"stdbuf", NULL, "ioe"},
	{"numactl", NULL, "ipPCNm"}, {"taskset", NULL, ""},  {"chrt", NULL, "TPD"},       {"exec", NULL, "a"},
	{"conda", "run", "np"},      {"mamba", "run", "np"}, {"micromamba", "run", "np"}, {"uv", "run", ""},
	{"poetry", "run", ""},
};

/* Programs that run the command in a container, after the name of its image. */
static const char *const containers[] = {"apptainer", "singularity"};

const char *wlb_run_base_of(const char *word)
{
	const char *slash = strrchr(word, '/');
	return slash != NULL ? slash + 1 : word;
}

/* Returns NULL where these words begin with no wrapper. */
static const struct wrapper *find_wrapper(char *const *words)
{
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
		const struct wrapper *known = &wrappers[i];
		if (strcmp(wlb_run_base_of(words[0]), known->name) == 0 &&
		    (known->next == NULL || (words[1] != NULL && strcmp(words[1], known->next) == 0)))
			return known;
	}
	return NULL;
}

/* A name of a program begins with no digit: such a word is a time, a priority or a mask. */
static bool is_of_wrapper(const char *word)
{
	return word[0] == '-' || isdigit((unsigned char)word[0]) || strchr(word, '=') != NULL;
}

/* Returns how many words the wrapper and its options have. */
static int wrapper_words(const struct wrapper *wrapper, char *const *words)
{
	int at = wrapper->next != NULL ? 2 : 1;
	for (; words[at] != NULL && is_of_wrapper(words[at]); at++)
		if (words[at][0] == '-' && words[at][1] != '\0' && words[at][2] == '\0' &&
		    strchr(wrapper->valued, words[at][1]) != NULL && words[at + 1] != NULL)
			at++;
	return at;
}

static bool is_image(const char *word)
{
	size_t length = strlen(word), end = strlen(".sif");
	return (length > end && strcmp(word + length - end, ".sif") == 0) || strstr(word, "://") != NULL;
}

/* The same of a container up to its image, whose name is known by its form; 0: these words begin with none. */
static int container_words(char *const *words)
{
	bool is_container = false;
	for (size_t i = 0; i < sizeof(containers) / sizeof(containers[0]); i++)
		is_container = is_container || strcmp(wlb_run_base_of(words[0]), containers[i]) == 0;
	if (!is_container || words[1] == NULL || strcmp(words[1], "exec") != 0)
		return 0;
	for (int at = 2; words[at] != NULL; at++)
		if (words[at][0] != '-' && is_image(words[at]))
			return at + 1;
	return 0;
}

int wlb_run_program_word(char *const *words)
{
	int at = 0, more = 1;
	while (words[at] != NULL && more > 0) {
		const struct wrapper *wrapper = find_wrapper(words + at);
		more = wrapper != NULL ? wrapper_words(wrapper, words + at) : container_words(words + at);
		at += more;
	}
	return at;
}
