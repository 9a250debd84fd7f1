/* What the checks of a node have found, as lines, as JSON and as one reason. An error ends one check alone, so that a
 * machine file that is missing does not hide a disk that fails. */
#ifndef CHECKS_NODE_REPORT_H
#define CHECKS_NODE_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "libwlb/wlb.h"

enum wlb_check_verdict { WLB_CHECK_OK, WLB_CHECK_FAILED, WLB_CHECK_NOT_CHECKED };

/* Bytes of a text; those of the reason, which Slurm keeps with the node and puts on one line. */
enum { WLB_FINDING_BYTES = 320, WLB_REASON_BYTES = 240, WLB_FINDINGS_MOST = 64 };

struct wlb_finding {
	char check[80]; /* "products", "disk /tmp" */
	enum wlb_check_verdict verdict;
	char measured[WLB_FINDING_BYTES]; /* or why it was not checked */
	char limit[80];                   /* "" where it has none */
};

struct wlb_check_report {
	struct wlb_finding findings[WLB_FINDINGS_MOST];
	int count;
	struct wlb_finding surplus; /* the last that did not fit; it is not reported */
	bool hangs;                 /* a device did not answer: what else is asked of it would hang, too */
	struct wlb_error unmade;    /* the first error for which a check could not be made; "": there was none */
};

/* Adds a finding whose `measured` is formatted, and returns it; the caller may set its limit. What does not fit into
 * the report replaces its last finding, unless that has failed. */
struct wlb_finding *wlb_report_add(struct wlb_check_report *report, const char *check, enum wlb_check_verdict verdict,
                                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds that a check could not be made because of an error: the other checks go on, and their report is whole. */
void wlb_report_add_unmade(struct wlb_check_report *report, const char *check, const struct wlb_error *why);

/* Sets the limit of a finding. */
void wlb_finding_limit(struct wlb_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes "CHECK: MEASURED; limit: LIMIT" of the first failure, in printable ASCII without quotes. Returns 0 where
 * nothing failed. */
int wlb_report_reason(const struct wlb_check_report *report, char reason[WLB_REASON_BYTES]);

void wlb_report_print(const struct wlb_check_report *report, FILE *out);

/* The name that Slurm has for this node, in printable ASCII: SLURMD_NODENAME, else that of the host without its domain,
 * as on most clusters. */
void wlb_report_node_name(char *node, size_t size);

/* Returns the same as wlb_report_print_json prints, without spaces where it is not indented; the caller frees it. NULL
 * if out of memory. */
char *wlb_report_json(const struct wlb_check_report *report, bool is_indented, struct wlb_error *error);

/* {"node", "healthy", "reason", "checks": [{"check", "verdict", "measured", "limit"}]}. Returns -1 if out of memory. */
int wlb_report_print_json(const struct wlb_check_report *report, FILE *out, struct wlb_error *error);

#endif
