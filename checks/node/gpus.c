#include "checks/node/gpus.h"

#include "checks/node/children.h"
#include "kernels/ops.h"

struct result {
	int count, is_unusable;
	struct wlb_gpu first;
};

static int count_gpus(int index, const void *context, void *memory, struct wlb_error *error)
{
	struct result *result = memory;
	(void)index, (void)context;
	result->count = wlb_cuda_device_count();
	result->is_unusable = wlb_cuda_is_unusable();
	return wlb_cuda_describe(0, &result->first, error);
}

static int judge(const struct wlb_children *children, const struct wlb_check_options *options,
                 struct wlb_check_report *report, struct wlb_error *error)
{
	const struct result *result = wlb_child_result(children, 0);
	char text[WLB_FINDING_BYTES];
	int is_refused = children->list[0].end == WLB_CHILD_REFUSED;
	if (is_refused && (options->gpus == 0 || result->is_unusable))
		return wlb_fail(error, "--device cuda: %s", children->list[0].error.message);
	if (children->list[0].end != WLB_CHILD_DONE) {
		wlb_child_describe(children, 0, text, sizeof(text));
		wlb_report_add(report, "gpus", WLB_CHECK_FAILED, "%s", text);
		report->hangs = children->list[0].end == WLB_CHILD_LATE;
		return 0;
	}
	int failed = result->count < options->gpus;
	struct wlb_finding *finding = wlb_report_add(report, "gpus", failed ? WLB_CHECK_FAILED : WLB_CHECK_OK,
	                                             "this process sees %d (%s)", result->count, result->first.model);
	if (options->gpus > 0)
		wlb_finding_limit(finding, "%d", options->gpus);
	return result->count;
}

int wlb_check_gpus(const struct wlb_check_options *options, struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_children children = {0};
	int count = wlb_children_run(&children, 1, sizeof(struct result), count_gpus, NULL, options->answer_s, error);
	if (count == 0)
		count = judge(&children, options, report, error);
	wlb_children_free(&children);
	return count;
}
