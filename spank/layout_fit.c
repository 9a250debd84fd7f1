#include "spank/layout_fit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WORDS_MAX = 512,
	COMMAND_BYTES = 65536,
	SCRIPT_BYTES = 65536,
	TASKS_MAX = 4096, /* of --tasks-per-node */
};

static const char option[] = "--ntasks-per-node";

/* Counts how often a text may name the tasks of a node, in any spelling that sbatch, srun or `wlb run` takes. */
static int count_mentions(const char *text)
{
	static const char part[] = "tasks-per-n";
	int count = 0;
	for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
		count++;
	return count;
}

/* Reads "=4" or " 4" after the option; 0: it is neither. */
static int read_number(const char *text)
{
	char *end;
	if ((*text != '=' && *text != ' ') || text[1] < '1' || text[1] > '9')
		return 0;
	long number = strtol(text + 1, &end, 10);
	return number <= TASKS_MAX && strchr(" \t\r\n#", *end) != NULL ? (int)number : 0;
}

static int read_words(char *const *words)
{
	size_t length = strlen(option);
	for (int i = 0; words[i] != NULL; i++) {
		char next[16];
		if (strncmp(words[i], option, length) != 0)
			continue;
		snprintf(next, sizeof(next), " %s",
		         words[i][length] == '\0' && words[i + 1] != NULL ? words[i + 1] : "");
		return read_number(words[i][length] == '=' ? words[i] + length : next);
	}
	return 0;
}

/* The option in a line #SBATCH. */
static int read_script(const char *script)
{
	const char *at = strstr(script, option), *line = at;
	while (line != NULL && line > script && line[-1] != '\n')
		line--;
	bool is_own = line != NULL && strncmp(line, "#SBATCH ", strlen("#SBATCH ")) == 0 &&
	              memchr(line + 1, '#', (size_t)(at - line - 1)) == NULL;
	return is_own ? read_number(at + strlen(option)) : 0;
}

int wlb_layout_fit_tasks(char *const *words, const char *script)
{
	int mentions = count_mentions(script);
	bool is_heterogeneous = strstr(script, "hetjob") != NULL || strstr(script, "packjob") != NULL;
	for (int i = 0; words[i] != NULL; i++) {
		mentions += count_mentions(words[i]);
		is_heterogeneous = is_heterogeneous || strcmp(words[i], ":") == 0;
	}
	/* A step of plain srun, and what the script sets for `wlb run`, may have other tasks. */
	if (is_heterogeneous || mentions != 1 || strstr(script, "wlb run") == NULL || strstr(script, "srun") != NULL ||
	    strstr(script, "NTASKS") != NULL)
		return 0;
	int tasks = read_words(words);
	return tasks > 0 ? tasks : read_script(script);
}

int wlb_layout_fit_check(const char *policy, int tasks_per_node, struct wlb_error *error)
{
	struct wlb_policy read;
	struct wlb_layout layout;
	if (tasks_per_node < 1 || wlb_policy_parse(policy, &read, NULL) != 0 || read.kind != WLB_POLICY_FIXED)
		return 0;
	/* On so many nodes every product of cp, pp and dp fits: what is left are the rules of one node. */
	double nodes = (double)read.fixed.tp * read.fixed.cp * read.fixed.pp;
	read.fixed.dp = 0;
	if (nodes * tasks_per_node > INT_MAX)
		return 0;
	const struct wlb_nodes all = {.count = (int)nodes, .ranks_per_node = tasks_per_node};
	if (wlb_layout_choose(&read, &all, NULL, &layout, error) == 0)
		return 0;
	wlb_fail_in(error, "--wlb-layout=%s with %s=%d", policy, option, tasks_per_node);
	return -1;
}

/* ---- this sbatch ------------------------------------------------------------------------------------------------- */

/* Reads all of a file; false where it is longer, empty, or cannot be read. The text ends with NUL. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t count = 0;
	ssize_t n = fd >= 0 ? 1 : -1;
	while (n > 0 && count < size) {
		n = read(fd, text + count, size - count);
		count += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (n != 0 || count == 0)
		return false;
	text[count] = '\0';
	return true;
}

/* Splits a command line of the kernel at its bytes 0; returns -1 where it has too many words. */
static int split(char *text, size_t count, char **words)
{
	int at = 0;
	for (size_t i = 0; i < count && at < WORDS_MAX; i += strlen(text + i) + 1)
		words[at++] = text + i;
	words[at] = NULL;
	return at < WORDS_MAX ? at : -1;
}

static bool read_command_line(char *text, size_t size, char **words)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t count = fd >= 0 ? read(fd, text, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (count <= 0 || (size_t)count == size - 1)
		return false;
	text[count] = '\0';
	return split(text, (size_t)count, words) > 0;
}

/* Finds the script, the first word that is a file as sbatch requires it, and ends the words before it. */
static bool take_script(char **words, char *script)
{
	struct stat status;
	for (int i = 1; words[i] != NULL; i++) {
		if (strncmp(words[i], "--wrap", strlen("--wrap")) == 0)
			return false;
		if (words[i][0] == '-' || stat(words[i], &status) != 0 || !S_ISREG(status.st_mode) ||
		    !read_text(words[i], script, SCRIPT_BYTES) || strncmp(script, "#!", 2) != 0)
			continue;
		words[i] = NULL;
		return true;
	}
	return false;
}

int wlb_layout_fit_submitted(const char *policy, struct wlb_error *error)
{
	char *command = malloc(COMMAND_BYTES), *script = malloc(SCRIPT_BYTES + 1);
	char **words = calloc(WORDS_MAX + 1, sizeof(*words));
	int rc = 0;
	if (command != NULL && script != NULL && words != NULL &&
	    strcmp(program_invocation_short_name, "sbatch") == 0 && read_command_line(command, COMMAND_BYTES, words) &&
	    take_script(words, script))
		rc = wlb_layout_fit_check(policy, wlb_layout_fit_tasks(words, script), error);
	free(words);
	free(script);
	free(command);
	return rc;
}
