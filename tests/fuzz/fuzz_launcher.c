/* Any words of a command: what is made of them has the words before the launcher and from its script on as they are. */
#include <string.h>

#include "coordinator/wlb/run/command/launcher.h"
#include "tests/fuzz/scratch.h"

enum { WORDS_MAX = 64, TEXT_MAX = 4096 };

static int count_of(char *const *words)
{
	int count = 0;
	while (words[count] != NULL)
		count++;
	return count;
}

static void check(char *const *words, int count, const struct wlb_launcher *launcher, char *const *made)
{
	int made_count = count_of(made), rest = count - launcher->script;
	char line[256];
	must(made_count >= launcher->program + rest);
	for (int i = 0; i < launcher->program; i++)
		must(strcmp(made[i], words[i]) == 0);
	for (int i = 1; i <= rest; i++)
		must(strcmp(made[made_count - i], words[count - i]) == 0);
	wlb_launcher_line(made, line, sizeof(line));
	must(strlen(line) < sizeof(line));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[TEXT_MAX + 1], *words[WORDS_MAX + 1], **made;
	struct wlb_launcher launcher;
	size_t length = bytes < TEXT_MAX ? bytes : TEXT_MAX;
	memcpy(text, data, length);
	text[length] = '\0';
	int count = scratch_lines(text, words, WORDS_MAX);
	if (!wlb_launcher_find(words, &launcher))
		return 0;
	must(launcher.program < launcher.first && launcher.first <= launcher.script && launcher.script <= count);
	for (int nodes = 1; nodes <= 2; nodes++) {
		const struct wlb_launcher_facts facts = {.nodes = nodes,
		                                         .first_nodes = 2,
		                                         .gpus_per_node = (int)(length % 3),
		                                         .id = "7.1",
		                                         .address = "n1",
		                                         .port = 30000};
		if (wlb_launcher_rewrite(words, &launcher, &facts, &made, NULL) != 0)
			continue;
		check(words, count, &launcher, made);
		wlb_launcher_free(made);
	}
	return 0;
}
