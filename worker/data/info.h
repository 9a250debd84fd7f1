/* `wlb data info`: how many documents a dataset has and how long they are. */
#ifndef WORKER_DATA_INFO_H
#define WORKER_DATA_INFO_H

#include <jansson.h>
#include <stdio.h>

#include "libwlb/wlb.h"
#include "worker/data/dataset.h"

enum { WLB_INFO_QUANTILES = 6, WLB_INFO_BINS = 64 };

/* The quantiles shown, in thousandths. */
extern const int wlb_info_permille[WLB_INFO_QUANTILES];

struct wlb_info {
	int64_t documents;
	int64_t tokens;
	int64_t longest;
	double mean;
	int64_t quantile[WLB_INFO_QUANTILES]; /* nearest rank */
	/* Bin b holds the lengths [2^(b-1), 2^b - 1], bin 0 the empty documents. */
	int64_t bin_documents[WLB_INFO_BINS];
	int64_t bin_tokens[WLB_INFO_BINS];
};

int wlb_info_compute(const struct wlb_dataset *dataset, struct wlb_info *info, struct wlb_error *error);
/* `facts` is what wlb_facts_read() has returned, also NULL. */
void wlb_info_print(const struct wlb_info *info, const char *prefix, const json_t *facts, FILE *to);
/* Prints one JSON object, with the facts as a member where there are any. Returns -1 if out of memory or where `to`
 * cannot be written. */
int wlb_info_print_json(const struct wlb_info *info, json_t *facts, FILE *to);

#endif
