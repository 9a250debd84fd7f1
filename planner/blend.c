#include "planner/blend.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planner/lengths_sample.h"

enum { PATH_BYTES = 4096 };

static bool is_weight(const char *word, double *weight)
{
	char *end;
	*weight = strtod(word, &end);
	return end != word && *end == '\0' && isfinite(*weight) && *weight >= 0.0;
}

int wlb_blend_parse(char *const *words, struct wlb_blend *blend, struct wlb_error *error)
{
	size_t count = 0;
	double weight;
	while (words[count] != NULL && strncmp(words[count], "--", 2) != 0)
		count++;
	blend->parts = calloc(count + 1, sizeof(*blend->parts));
	if (blend->parts == NULL)
		return wlb_fail(error, "out of memory for the %zu words of --data-path", count);
	blend->weighted = count > 0 && count % 2 == 0;
	for (size_t i = 0; blend->weighted && i < count; i += 2)
		blend->weighted = is_weight(words[i], &weight);
	for (size_t i = 0; i < count; i++) {
		struct wlb_blend_part *part = &blend->parts[blend->count++];
		if (blend->weighted)
			is_weight(words[i++], &part->weight);
		part->prefix = words[i];
	}
	return 0;
}

void wlb_blend_free(struct wlb_blend *blend)
{
	free(blend->parts);
	*blend = (struct wlb_blend){0};
}

static int index_path(const char *prefix, char path[PATH_BYTES], struct wlb_error *error)
{
	if (snprintf(path, PATH_BYTES, "%s.idx", prefix) < PATH_BYTES)
		return 0;
	return wlb_fail(error, "%.60s...: the path is too long", prefix);
}

const char *wlb_blend_unreadable(const struct wlb_blend *blend)
{
	char path[PATH_BYTES];
	for (size_t i = 0; i < blend->count; i++)
		if (index_path(blend->parts[i].prefix, path, NULL) < 0 || access(path, R_OK) != 0)
			return blend->parts[i].prefix;
	return NULL;
}

/* A sample of one part, and the share of the tokens that it is to have, in any unit. */
struct sampled {
	struct wlb_length_list list;
	double share;
};

static double mean_tokens(const struct sampled *sampled)
{
	return (double)sampled->list.total_tokens / (double)sampled->list.count;
}

/* Without weights the share is that of the part's size: its index grows with the number of its documents. */
static int sample_part(const struct wlb_blend *blend, size_t part, struct sampled *sampled, struct wlb_error *error)
{
	char path[PATH_BYTES];
	struct stat st = {.st_size = 0};
	if (index_path(blend->parts[part].prefix, path, error) < 0 ||
	    wlb_length_list_sample_index(path, &sampled->list, error) < 0)
		return -1;
	if (sampled->list.total_tokens == 0)
		return wlb_fail(error, "%s has no token", path);
	stat(path, &st);
	sampled->share = blend->weighted ? blend->parts[part].weight : (double)st.st_size * mean_tokens(sampled);
	return 0;
}

/* Takes WLB_SAMPLE_DOCUMENTS documents of all parts. */
static int mix(const struct sampled *sampled, size_t count, struct wlb_length_list *list, struct wlb_error *error)
{
	double documents = 0.0;
	int rc = 0;
	for (size_t i = 0; i < count; i++)
		documents += sampled[i].share / mean_tokens(&sampled[i]);
	for (size_t i = 0; i < count; i++) {
		double left = documents > 0.0 ? sampled[i].share * WLB_SAMPLE_DOCUMENTS / documents : 0.0;
		for (size_t d = 0; rc == 0 && left > 0.0; d = (d + 1) % sampled[i].list.count) {
			rc = wlb_length_list_add(list, sampled[i].list.tokens[d], error);
			left -= (double)sampled[i].list.tokens[d];
		}
	}
	wlb_length_list_shuffle(list, 0);
	return rc;
}

int wlb_blend_sample(const struct wlb_blend *blend, struct wlb_length_list *list, struct wlb_error *error)
{
	struct sampled *sampled = calloc(blend->count + 1, sizeof(*sampled));
	int rc = sampled != NULL ? 0 : wlb_fail(error, "out of memory for %zu datasets", blend->count);
	for (size_t i = 0; rc == 0 && i < blend->count; i++)
		rc = sample_part(blend, i, &sampled[i], error);
	if (rc == 0)
		rc = mix(sampled, blend->count, list, error);
	for (size_t i = 0; sampled != NULL && i < blend->count; i++)
		wlb_length_list_free(&sampled[i].list);
	free(sampled);
	if (rc == 0 && list->total_tokens == 0)
		return wlb_fail(error, "no dataset has a weight above 0");
	return rc;
}
