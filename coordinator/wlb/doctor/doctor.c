/* wlb doctor: checks everything that would stop a run, and prints the remedies. */
#include <stdio.h>

#include "common/clock.h"
#include "common/output/printable.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/doctor/finding.h"
#include "coordinator/wlb/doctor/machine.h"
#include "coordinator/wlb/doctor/node.h"
#include "coordinator/wlb/doctor/slurm.h"
#include "coordinator/wlb/doctor/worker.h"

struct check {
	void (*run)(struct wlb_doctor *);
	bool asks_slurm;
};

static const struct check checks[] = {
	{wlb_doctor_munge, false},     {wlb_doctor_slurm, false},       {wlb_doctor_plugin, true},
	{wlb_doctor_pmix, true},       {wlb_doctor_fence, true},        {wlb_doctor_two_nodes, false},
	{wlb_doctor_lost_nodes, true}, {wlb_doctor_coordinator, false}, {wlb_doctor_settings, false},
	{wlb_doctor_worker, false},    {wlb_doctor_mpi, false},         {wlb_doctor_gpus, false},
	{wlb_doctor_machine, false},   {wlb_doctor_save_dir, false},
};

static void print_findings(const struct wlb_doctor *doctor)
{
	const json_t *finding;
	size_t i;
	json_array_foreach(doctor->findings, i, finding)
	{
		const char *check, *word, *detail, *remedy;
		if (json_unpack((json_t *)finding, "{s:s, s:s, s:s, s:s}", "check", &check, "finding", &word, "detail",
		                &detail, "remedy", &remedy) == 0)
			printf("%-4s  %-11s  %s%s%s\n", word, check, detail, *remedy ? "; " : "", remedy);
	}
}

struct request {
	const char *save_dir;
	bool json;
};

static int run_checks(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct wlb_doctor doctor = {.save_dir = request->save_dir, .findings = json_array()};
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!checks[i].asks_slurm || !doctor.without_slurm)
			checks[i].run(&doctor);
	int code = doctor.failed ? WLB_EXIT_FAILED : WLB_EXIT_DONE;
	if (!request->json)
		print_findings(&doctor);
	else if (wlb_json_print(doctor.findings) != 0)
		code = WLB_EXIT_FAILED;
	json_decref(doctor.findings);
	(void)error; /* the findings state the errors */
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, "save-dir", FIELD(save_dir), "DIR", "the directory for checkpoints"), .initial = "."},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the findings as JSON")},
};

static const struct wlb_option_table table = {
	.command = "wlb doctor",
	.about = "Checks on this host what a run needs: MUNGE, Slurm and the plugin, PMIx and its fence, whether Slurm "
		 "uses lost nodes again, the coordinator, its settings and its database, the worker, Open MPI, GPUs, "
		 "the machine that a job is planned with, and the directory for checkpoints. Each finding comes with "
		 "its remedy.",
	.notes = "Exit code: 1 when something would stop a run.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_doctor = {
	.name = "doctor",
	.summary = "Check what a run needs, with a remedy for each finding",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = run_checks,
};
