#include "checks/node/xid_check.h"

#include <unistd.h>

#include "checks/node/children.h"
#include "checks/node/kernel_log.h"
#include "common/seconds.h"

/* More GPUs than a node has are not listed one by one. */
enum { FINDINGS_MOST = 16 };

static const double READ_S = 10.0, HOUR_S = 3600.0, FAULT_COUNTS_S = 24.0 * 3600.0;

struct age {
	char text[32];
};

static struct age age_text(double at_s, double now_s)
{
	struct age age;
	double seconds = now_s > at_s ? now_s - at_s : 0.0;
	if (seconds < 60.0)
		snprintf(age.text, sizeof(age.text), "%.0f s ago", seconds);
	else if (seconds < HOUR_S)
		snprintf(age.text, sizeof(age.text), "%.0f min ago", seconds / 60.0);
	else
		snprintf(age.text, sizeof(age.text), "%.1f h ago", seconds / HOUR_S);
	return age;
}

static bool is_faulty(const struct wlb_xid_gpu *entry, double now_s)
{
	return entry->fault.number != 0 && now_s - entry->fault.at_s <= FAULT_COUNTS_S;
}

/* A fault is followed by others: after 79 the programs on the GPU have 45. So both are told. */
static void add_gpu(const struct wlb_xid_gpu *entry, double now_s, struct wlb_check_report *report)
{
	char check[40], newest[64];
	snprintf(check, sizeof(check), "xid %04x:%02x:%02x", entry->gpu.domain, entry->gpu.bus, entry->gpu.device);
	snprintf(newest, sizeof(newest), "newest: %d, %s", entry->newest.number,
	         age_text(entry->newest.at_s, now_s).text);
	if (entry->fault.number == 0)
		wlb_report_add(report, check, WLB_CHECK_OK, "%s", newest);
	else
		wlb_report_add(report, check, is_faulty(entry, now_s) ? WLB_CHECK_FAILED : WLB_CHECK_OK,
		               "%d (%s), %s; %s", entry->fault.number, wlb_xid_fault(entry->fault.number),
		               age_text(entry->fault.at_s, now_s).text, newest);
}

/* The faulty GPUs come first, so that none of them is left out for another. */
void wlb_xids_judge(const struct wlb_xid_list *list, double now_s, struct wlb_check_report *report)
{
	int added = 0;
	for (int faulty = 1; faulty >= 0; faulty--)
		for (int i = 0; i < list->count && added < FINDINGS_MOST; i++)
			if (is_faulty(&list->gpus[i], now_s) == (faulty == 1)) {
				add_gpu(&list->gpus[i], now_s, report);
				added++;
			}
}

static int read_log(int index, const void *context, void *memory, struct wlb_error *error)
{
	struct wlb_kernel_log log;
	(void)index, (void)context;
	int fd = wlb_kernel_log_open(error);
	if (fd < 0)
		return -1;
	wlb_kernel_log_begin(&log, fd);
	int rc = wlb_xid_list_read(memory, &log, error);
	close(fd);
	return rc;
}

static void report_log(const struct wlb_children *children, const struct wlb_watched_xids *watched,
                       const struct wlb_xid_list *list, struct wlb_check_report *report)
{
	char reason[WLB_FINDING_BYTES];
	if (children->list[0].end != WLB_CHILD_DONE) {
		wlb_child_describe(children, 0, reason, sizeof(reason));
		wlb_report_add(report, "xid", WLB_CHECK_NOT_CHECKED,
		               "the log of the kernel is not readable: %.200s; %s", reason,
		               watched->gpus > 0 ? "NVML tells of errors during this check"
		                                 : "NVML does not tell of errors either");
	} else if (list->count == 0) {
		wlb_report_add(report, "xid", WLB_CHECK_OK,
		               "none in the log of the kernel since the driver was loaded");
	}
}

int wlb_check_xids(const struct wlb_watched_xids *watched, struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_children children = {0};
	int rc = wlb_children_run(&children, 1, sizeof(struct wlb_xid_list), read_log, NULL, READ_S, error);
	if (rc == 0) {
		struct wlb_xid_list *list = wlb_child_result(&children, 0);
		wlb_xid_list_join(list, &watched->list);
		wlb_xids_judge(list, wlb_now_s(), report);
		report_log(&children, watched, list, report);
	}
	wlb_children_free(&children);
	return rc;
}
