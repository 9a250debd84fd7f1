#include "worker/data/info.h"

#include <stdlib.h>

#include "common/show.h"
#include "worker/data/facts.h"

enum { BAR_COLUMNS = 40 };

const int wlb_info_permille[WLB_INFO_QUANTILES] = {100, 500, 900, 950, 990, 999};

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

static int bin_of(int64_t length)
{
	return length > 0 ? 64 - __builtin_clzll((unsigned long long)length) : 0;
}

/* Sets quantiles, longest and mean of `lengths`, which ascend; there is at least one. */
static void set_statistics(struct wlb_info *info, const int64_t *lengths)
{
	for (int q = 0; q < WLB_INFO_QUANTILES; q++) {
		int64_t rank = (wlb_info_permille[q] * info->documents + 999) / 1000;
		info->quantile[q] = lengths[rank - 1];
	}
	info->longest = lengths[info->documents - 1];
	info->mean = (double)info->tokens / (double)info->documents;
}

int wlb_info_compute(const struct wlb_dataset *dataset, struct wlb_info *info, struct wlb_error *error)
{
	*info = (struct wlb_info){.documents = wlb_dataset_documents(dataset), .tokens = wlb_dataset_tokens(dataset)};
	if (info->documents == 0)
		return 0;
	int64_t *lengths = calloc((size_t)info->documents, sizeof(*lengths));
	if (lengths == NULL)
		return wlb_fail(error, "out of memory for the lengths of %lld documents", (long long)info->documents);
	for (int64_t i = 0; i < info->documents; i++) {
		lengths[i] = wlb_dataset_length(dataset, i);
		info->bin_documents[bin_of(lengths[i])]++;
		info->bin_tokens[bin_of(lengths[i])] += lengths[i];
	}
	qsort(lengths, (size_t)info->documents, sizeof(*lengths), ascending);
	set_statistics(info, lengths);
	free(lengths);
	return 0;
}

static int64_t bin_from(int bin)
{
	return bin > 0 ? INT64_C(1) << (bin - 1) : 0;
}

static int64_t bin_to(int bin)
{
	return bin > 0 ? bin_from(bin) - 1 + bin_from(bin) : 0;
}

/* Sets the first and the last bin that hold a document; an empty dataset has none: *last < *first. */
static void used_bins(const struct wlb_info *info, int *first, int *last)
{
	*first = 0;
	*last = WLB_INFO_BINS - 1;
	while (*first < WLB_INFO_BINS && info->bin_documents[*first] == 0)
		++*first;
	while (*last >= 0 && info->bin_documents[*last] == 0)
		--*last;
}

static void print_histogram(const struct wlb_info *info, FILE *to)
{
	int first, last;
	int64_t tallest = 1;
	used_bins(info, &first, &last);
	for (int b = first; b <= last; b++)
		tallest = info->bin_documents[b] > tallest ? info->bin_documents[b] : tallest;
	fprintf(to, "\n%24s  %-*s %10s %8s\n", "tokens a document", BAR_COLUMNS, "", "documents", "tokens");
	for (int b = first; b <= last; b++) {
		int64_t n = info->bin_documents[b];
		int columns = (int)(n * BAR_COLUMNS / tallest);
		fprintf(to, "%11lld - %10lld  ", (long long)bin_from(b), (long long)bin_to(b));
		for (int c = 0; c < BAR_COLUMNS; c++)
			fputc(c < columns || (c == 0 && n > 0) ? '#' : ' ', to);
		fprintf(to, " %10lld %6.1f %%\n", (long long)n,
		        info->tokens ? 100.0 * (double)info->bin_tokens[b] / (double)info->tokens : 0.0);
	}
}

void wlb_info_print(const struct wlb_info *info, const char *prefix, const json_t *facts, FILE *to)
{
	wlb_show_line(to, "%s: %lld documents, %lld tokens", prefix, (long long)info->documents,
	              (long long)info->tokens);
	wlb_facts_print(facts, to);
	if (info->documents == 0)
		return;
	fprintf(to, "length in tokens: mean %.1f, longest %lld\n", info->mean, (long long)info->longest);
	for (int q = 0; q < WLB_INFO_QUANTILES; q++)
		fprintf(to, "%7.4g %% have at most %10lld\n", wlb_info_permille[q] / 10.0,
		        (long long)info->quantile[q]);
	print_histogram(info, to);
}

static json_t *format_histogram(const struct wlb_info *info)
{
	int first, last;
	json_t *bins = json_array();
	used_bins(info, &first, &last);
	for (int b = first; b <= last; b++)
		json_array_append_new(bins,
		                      json_pack("{s:I, s:I, s:I, s:I}", "from", (json_int_t)bin_from(b), "to",
		                                (json_int_t)bin_to(b), "documents", (json_int_t)info->bin_documents[b],
		                                "tokens", (json_int_t)info->bin_tokens[b]));
	return bins;
}

int wlb_info_print_json(const struct wlb_info *info, json_t *facts, FILE *to)
{
	json_t *length = json_pack("{s:f, s:I}", "mean", info->mean, "max", (json_int_t)info->longest);
	for (int q = 0; q < WLB_INFO_QUANTILES; q++) {
		char name[16];
		snprintf(name, sizeof(name), "p%g", wlb_info_permille[q] / 10.0);
		json_object_set_new(length, name, json_integer(info->quantile[q]));
	}
	json_t *all = json_pack("{s:I, s:I, s:o, s:o}", "documents", (json_int_t)info->documents, "tokens",
	                        (json_int_t)info->tokens, "length", length, "histogram", format_histogram(info));
	if (facts != NULL)
		json_object_set(all, "facts", facts);
	int rc = all == NULL || json_dumpf(all, to, JSON_REAL_PRECISION(12)) < 0 || fputc('\n', to) == EOF ? -1 : 0;
	json_decref(all);
	return rc;
}
