#include "worker/launch/data_choice.h"

#include <stdlib.h>
#include <string.h>

/* Whether the word is --data-path, or a beginning of it that no other option has, perhaps with "=VALUE". */
static int is_data_path(const char *word)
{
	size_t bytes = strcspn(word, "=");
	return bytes >= strlen("--da") && strncmp(word, "--data-path", bytes) == 0;
}

/* Collects the words behind each --data-path into words[], which has a place for each that is given and for a NULL.
 * Returns where those of the last one begin. */
static size_t collect(char *const *argv, char **words, size_t capacity, size_t *count)
{
	size_t begin = 0;
	int follows = 0;
	*count = 0;
	for (; *argv != NULL && *count < capacity; argv++) {
		if (is_data_path(*argv)) {
			char *value = strchr(*argv, '=');
			begin = *count;
			follows = 1;
			if (value != NULL)
				words[(*count)++] = value + 1;
		} else if (strncmp(*argv, "-", 1) == 0) {
			follows = 0;
		} else if (follows) {
			words[(*count)++] = *argv;
		}
	}
	return begin;
}

/* Refuses the first word that follows no --data-path, if there is one. */
static int check_all_follow(const struct wlb_option_list *given, char *const *words, size_t count,
                            struct wlb_error *error)
{
	for (int i = 0; i < given->count; i++) {
		size_t w = 0;
		while (w < count && words[w] != given->texts[i])
			w++;
		if (w == count)
			return wlb_fail(error, "'%.200s': no argument is taken; see 'wlb-worker train --help'",
			                given->texts[i]);
	}
	return 0;
}

/* Takes the words of the last --data-path. */
static int take(char *const *words, struct wlb_data_choice *choice, struct wlb_error *error)
{
	struct wlb_blend read = {0};
	int rc = wlb_blend_parse(words, &read, error);
	if (rc == 0 && read.count > WLB_DATASET_PARTS_MAX)
		rc = wlb_fail(error, "--data-path: %zu datasets: at most %d are taken, join some of them", read.count,
		              WLB_DATASET_PARTS_MAX);
	if (rc == 0) {
		memcpy(choice->parts, read.parts, read.count * sizeof(*read.parts));
		for (size_t i = 0; i < read.count; i++)
			choice->sources[i] = (struct wlb_dataset_source){read.parts[i].prefix, read.parts[i].weight};
		choice->blend = (struct wlb_blend){choice->parts, read.count, read.weighted};
	}
	wlb_blend_free(&read);
	return rc;
}

int wlb_data_choice_read(char *const *argv, const struct wlb_option_list *given, const char *split,
                         struct wlb_data_choice *choice, struct wlb_error *error)
{
	size_t count, capacity = (size_t)given->count;
	char **words = calloc(capacity + 1, sizeof(*words));
	if (words == NULL)
		return wlb_fail(error, "out of memory for the %d words of --data-path", given->count);
	size_t begin = collect(argv, words, capacity, &count);
	int rc = check_all_follow(given, words, count, error);
	if (rc == 0)
		rc = wlb_split_parse(split != NULL ? split : "1", &choice->split, error);
	if (rc == 0)
		rc = take(words + begin, choice, error);
	free(words);
	return rc;
}

struct wlb_dataset_choice wlb_data_choice_of(const struct wlb_data_choice *choice, enum wlb_split_part part)
{
	return (struct wlb_dataset_choice){
		.sources = choice->sources,
		.count = (int)choice->blend.count,
		.is_weighted = choice->blend.weighted,
		.from = choice->split.from[part],
		.to = choice->split.to[part],
	};
}
