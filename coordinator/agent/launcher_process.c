#include "coordinator/agent/launcher_process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/process_variable.h"

enum {
	COMMAND_BYTES = 8192,
	NAME_WORDS = 4, /* python -u -m torch.distributed.run */
};

/* The words of its command, each with its NUL; what is beyond the size is left out. */
struct words {
	char text[COMMAND_BYTES];
	size_t length;
};

static void read_words(pid_t pid, struct words *words)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, words->text, sizeof(words->text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	words->length = length > 0 ? (size_t)length : 0;
	words->text[words->length] = '\0';
}

/* Returns the word after this one; NULL: there is none. */
static const char *next_word(const struct words *words, const char *word)
{
	const char *next = word + strlen(word) + 1;
	return next < words->text + words->length ? next : NULL;
}

static const char *launcher_name(const char *word)
{
	static const struct {
		const char *word, *name;
	} launchers[] = {{"torchrun", "torchrun"},
	                 {"torch.distributed.run", "torchrun"},
	                 {"torch.distributed.launch", "torchrun"},
	                 {"ft_launcher", "ft_launcher"},
	                 {"accelerate", "accelerate"},
	                 {"accelerate.commands.launch", "accelerate"},
	                 {"deepspeed", "deepspeed"}};
	const char *slash = strrchr(word, '/'), *base = slash != NULL ? slash + 1 : word;
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		if (strcmp(base, launchers[i].word) == 0)
			return launchers[i].name;
	return NULL;
}

/* It is the first word, or what an interpreter runs: that is its first word which is no option. */
bool wlb_launcher_process(pid_t pid, const char **name)
{
	struct words words;
	read_words(pid, &words);
	const char *word = words.length > 0 ? words.text : NULL;
	*name = NULL;
	for (int i = 0; i < NAME_WORDS && word != NULL && *name == NULL; i++) {
		*name = launcher_name(word);
		word = i == 0 || word[0] == '-' ? next_word(&words, word) : NULL;
	}
	return *name != NULL;
}

/* Returns the value of an option "--name=VALUE", or "--name VALUE"; NULL: the word is another. */
static const char *value_of(const struct words *words, const char *word)
{
	static const char *const names[] = {"--nnodes", "--num_machines", "--num-machines", "--num_nodes",
	                                    "--num-nodes"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i]);
		if (strncmp(word, names[i], length) != 0)
			continue;
		if (word[length] == '=')
			return word + length + 1;
		if (word[length] == '\0')
			return next_word(words, word);
	}
	return NULL;
}

int wlb_launcher_process_nodes(pid_t pid)
{
	struct words words;
	char variable[32] = "";
	const char *value = NULL;
	read_words(pid, &words);
	for (const char *word = words.text; words.length > 0 && word != NULL && value == NULL;
	     word = next_word(&words, word))
		value = value_of(&words, word);
	if (value == NULL && wlb_process_variable(pid, "PET_NNODES", variable, sizeof(variable)) == 0)
		value = variable;
	long nodes = value != NULL ? strtol(value, NULL, 10) : 0; /* of 2:4 the 2 */
	return nodes > 0 && nodes < 1 << 20 ? (int)nodes : 0;
}
