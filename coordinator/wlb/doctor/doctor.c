/* wlb doctor: what would stop a run, and what to do about it. */
#include <stdio.h>

#include "common/clock.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/command.h"
#include "coordinator/wlb/doctor/finding.h"
#include "coordinator/wlb/doctor/node.h"
#include "coordinator/wlb/doctor/slurm.h"

static const char help[] =
	"Usage: wlb doctor [--save-dir DIR] [--json]\n\n"
	"Checks on this host what a run needs: MUNGE, Slurm and the plugin, PMIx and its fence, the coordinator and "
	"its\n"
	"database, the worker, Open MPI, GPUs, and the folder for checkpoints. Each finding comes with its remedy.\n\n"
	"  --save-dir DIR  the folder for checkpoints (default: this one)\n"
	"  --json          the findings as JSON\n\n"
	"Exit code: 1 when something would stop a run.\n";

struct check {
	void (*run)(struct wlb_doctor *);
	bool asks_slurm;
};

static const struct check checks[] = {
	{wlb_doctor_munge, false}, {wlb_doctor_slurm, false},       {wlb_doctor_plugin, true},  {wlb_doctor_pmix, true},
	{wlb_doctor_fence, true},  {wlb_doctor_coordinator, false}, {wlb_doctor_worker, false}, {wlb_doctor_mpi, false},
	{wlb_doctor_gpus, false},  {wlb_doctor_save_dir, false},
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

static int doctor_main(const struct wlb_command *self, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
	                                        {"save-dir", required_argument, NULL, 's'},
	                                        {"help", no_argument, NULL, WLB_OPTION_HELP},
	                                        {0}};
	struct wlb_doctor doctor = {.save_dir = ".", .findings = json_array()};
	int option, json = 0;
	while ((option = wlb_command_option(self, argc, argv, options)) != -1) {
		if (option == WLB_OPTION_HELP || option == WLB_OPTION_WRONG)
			return option == WLB_OPTION_HELP ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
		if (option == 's')
			doctor.save_dir = optarg;
		else
			json = 1;
	}
	if (optind < argc)
		return wlb_command_fail(self, WLB_EXIT_USAGE, "takes no argument; see 'wlb help doctor'");
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!checks[i].asks_slurm || !doctor.without_slurm)
			checks[i].run(&doctor);
	if (json)
		wlb_api_print(doctor.findings);
	else
		print_findings(&doctor);
	json_decref(doctor.findings);
	return doctor.failed ? WLB_EXIT_FAILED : WLB_EXIT_DONE;
}

const struct wlb_command wlb_command_doctor = {
	.name = "doctor",
	.summary = "Check what a run needs, with a remedy for each finding",
	.help = help,
	.main = doctor_main,
};
