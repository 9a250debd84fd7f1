/* wlb report: writes the page of a run, or of several. */
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "common/atomic_file.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/report/data.h"
#include "coordinator/wlb/report/page.h"
#include "coordinator/wlb/run_name.h"

enum { STEPS_MOST = 200000 };

struct request {
	struct wlb_option_list runs;
	const char *output;
	bool has_outputs;
};

/* Sets the names of the runs, each once. Returns WLB_EXIT_DONE, else the exit code. */
static int find_runs(const struct request *request, char names[][WLB_RUN_NAME_BYTES], struct wlb_error *error)
{
	if (request->runs.count > WLB_REPORT_RUNS_MAX) {
		wlb_fail(error, "%d runs: a report has %d at most; write one for each group", request->runs.count,
		         WLB_REPORT_RUNS_MAX);
		return WLB_EXIT_USAGE;
	}
	for (int i = 0; i < request->runs.count; i++) {
		int found = wlb_run_name_find(request->runs.texts[i], names[i], error);
		for (int k = 0; found == WLB_EXIT_DONE && k < i; k++)
			if (strcmp(names[k], names[i]) == 0) {
				wlb_fail(error, "run %s is named twice: a report has each run once", names[i]);
				found = WLB_EXIT_USAGE;
			}
		if (found != WLB_EXIT_DONE)
			return found;
	}
	return WLB_EXIT_DONE;
}

/* Only its owner may read the file: others could not read the run where PrivateData=jobs or private_data says so. */
static int write_page(const char *path, const json_t *data, struct wlb_error *error)
{
	struct wlb_atomic_file file;
	if (wlb_atomic_file_open(&file, path, error) != 0)
		return -1;
	if (file.temporary[0] != '\0' && fchmod(fileno(file.out), 0600) != 0) {
		wlb_atomic_file_drop(&file);
		return wlb_fail(error, "file %s: cannot be made private to you", path);
	}
	if (wlb_report_page(data, NULL, file.out, error) != 0) {
		wlb_atomic_file_drop(&file);
		return -1;
	}
	return wlb_atomic_file_commit(&file, error);
}

static int report(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char names[WLB_REPORT_RUNS_MAX][WLB_RUN_NAME_BYTES];
	const char *texts[WLB_REPORT_RUNS_MAX];
	int found = find_runs(request, names, error);
	if (found != WLB_EXIT_DONE)
		return found;
	for (int i = 0; i < request->runs.count; i++)
		texts[i] = names[i];
	wlb_pending_deliver();
	struct wlb_report_wanted wanted = {.names = texts,
	                                   .count = request->runs.count,
	                                   .steps_most = STEPS_MOST,
	                                   .has_outputs = request->has_outputs};
	json_t *data = wlb_report_data(&wanted, error);
	if (data == NULL)
		return WLB_EXIT_FAILED;
	int rc = write_page(request->output, data, error);
	json_decref(data);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(runs), "RUN...", "one run, or up to 8 that are compared: " WLB_RUN_NAME_HELP),
         .required = true},
	{WLB_OPTION(TEXT, "output", FIELD(output), "FILE",
                    "the page; the file that there is stays until the new one is complete"),
         .letter = 'o', .required = true},
	{WLB_OPTION(FLAG, "outputs", FIELD(has_outputs), NULL,
                    "also the commands, the files of their output and the exceptions, which the owner of the run, "
                    "SlurmUser and root alone "
                    "may read")},
};

static const struct wlb_option_table table = {
	.command = "wlb report",
	.about = "Writes one HTML page about a run: its loss with faults, attempts and checkpoints, throughput, where "
		 "the time went, the "
		 "pipeline of a step, how late ranks are, balance, why this layout, what happened and what to do next. "
		 "Several runs are "
		 "compared. The page loads nothing from anywhere: it can be sent. Only you can read the file at first.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_report = {
	.name = "report",
	.summary = "Write a page about a run, or about several",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = report,
};
