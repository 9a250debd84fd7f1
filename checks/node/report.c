#include "checks/node/report.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

static const char *const verdicts[] = {
	[WLB_CHECK_OK] = "ok", [WLB_CHECK_FAILED] = "failed", [WLB_CHECK_NOT_CHECKED] = "not checked"};

/* Replaces what would break a line, or a word in the quotes of a shell. */
static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
		else if (strchr("\"'`$\\", *text) != NULL)
			*text = ' ';
}

static struct wlb_finding *place_for(struct wlb_check_report *report)
{
	struct wlb_finding *last = &report->findings[WLB_FINDINGS_MOST - 1];
	if (report->count < WLB_FINDINGS_MOST)
		return &report->findings[report->count++];
	return last->verdict == WLB_CHECK_FAILED ? &report->surplus : last;
}

struct wlb_finding *wlb_report_add(struct wlb_check_report *report, const char *check, enum wlb_check_verdict verdict,
                                   const char *format, ...)
{
	struct wlb_finding *finding = place_for(report);
	va_list arguments;
	va_start(arguments, format);
	*finding = (struct wlb_finding){.verdict = verdict};
	snprintf(finding->check, sizeof(finding->check), "%s", check);
	vsnprintf(finding->measured, sizeof(finding->measured), format, arguments);
	va_end(arguments);
	make_printable(finding->check);
	make_printable(finding->measured);
	return finding;
}

void wlb_report_add_unmade(struct wlb_check_report *report, const char *check, const struct wlb_error *why)
{
	wlb_report_add(report, check, WLB_CHECK_NOT_CHECKED, "%.300s", why->message);
	if (report->unmade.message[0] == '\0')
		wlb_fail(&report->unmade, "%s: %s", check, why->message);
}

void wlb_finding_limit(struct wlb_finding *finding, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	wlb_text_vformat(finding->limit, sizeof(finding->limit), format, arguments);
	va_end(arguments);
}

static const struct wlb_finding *first_failure(const struct wlb_check_report *report)
{
	for (int i = 0; i < report->count; i++)
		if (report->findings[i].verdict == WLB_CHECK_FAILED)
			return &report->findings[i];
	return NULL;
}

int wlb_report_reason(const struct wlb_check_report *report, char reason[WLB_REASON_BYTES])
{
	const struct wlb_finding *failure = first_failure(report);
	*reason = '\0';
	if (failure == NULL)
		return 0;
	int has_limit = failure->limit[0] != '\0';
	int length = snprintf(reason, WLB_REASON_BYTES, "%s: %s%s%s", failure->check, failure->measured,
	                      has_limit ? "; limit: " : "", failure->limit);
	if (length >= WLB_REASON_BYTES)
		memcpy(reason + WLB_REASON_BYTES - 4, "...", 4);
	return 1;
}

void wlb_report_print(const struct wlb_check_report *report, FILE *out)
{
	int width = 0;
	for (int i = 0; i < report->count; i++) {
		int length = (int)strlen(report->findings[i].check);
		width = length > width ? length : width;
	}
	for (int i = 0; i < report->count; i++) {
		const struct wlb_finding *f = &report->findings[i];
		fprintf(out, "%-*s  %-11s  %s%s%s\n", width, f->check, verdicts[f->verdict], f->measured,
		        f->limit[0] != '\0' ? "; limit: " : "", f->limit);
	}
}

static json_t *finding_json(const struct wlb_finding *finding)
{
	json_t *limit = finding->limit[0] != '\0' ? json_string(finding->limit) : json_null();
	return json_pack("{s:s, s:s, s:s, s:o}", "check", finding->check, "verdict", verdicts[finding->verdict],
	                 "measured", finding->measured, "limit", limit);
}

void wlb_report_node_name(char *node, size_t size)
{
	const char *of_slurm = getenv("SLURMD_NODENAME");
	if (of_slurm != NULL && *of_slurm != '\0') {
		snprintf(node, size, "%s", of_slurm);
	} else {
		gethostname(node, size - 1);
		node[strcspn(node, ".")] = '\0';
	}
	make_printable(node);
}

char *wlb_report_json(const struct wlb_check_report *report, bool is_indented, struct wlb_error *error)
{
	char reason[WLB_REASON_BYTES], node[HOST_NAME_MAX + 1] = "";
	int failed = wlb_report_reason(report, reason);
	wlb_report_node_name(node, sizeof(node));
	json_t *checks = json_array();
	int rc = 0;
	for (int i = 0; i < report->count && rc == 0; i++)
		rc = json_array_append_new(checks, finding_json(&report->findings[i]));
	json_t *root = json_pack("{s:s, s:b, s:s?, s:o}", "node", node, "healthy", !failed, "reason",
	                         failed ? reason : NULL, "checks", checks);
	char *text = rc == 0 && root != NULL ? json_dumps(root, is_indented ? JSON_INDENT(2) : JSON_COMPACT) : NULL;
	json_decref(root);
	if (text == NULL)
		wlb_fail(error, "out of memory for the report");
	return text;
}

int wlb_report_print_json(const struct wlb_check_report *report, FILE *out, struct wlb_error *error)
{
	char *text = wlb_report_json(report, true, error);
	if (text == NULL)
		return -1;
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}
