/* wlb doctor: what would stop a run, and what to do about it. */
#include "coordinator/wlb/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/command.h"

enum { PROGRAM_MS = 10000 };

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

void wlb_doctor_note(struct wlb_doctor *doctor, enum wlb_finding finding, const char *what, const char *remedy,
                     const char *format, ...)
{
	static const char *const words[] = {"ok", "info", "warn", "FAIL"};
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_array_append_new(doctor->findings, json_pack("{s:s, s:s, s:s, s:s}", "check", what, "finding",
	                                                  words[finding], "detail", text, "remedy", remedy));
	doctor->failed = doctor->failed || finding == WLB_FINDING_FAIL;
}

/* Reads until end of file or deadline; what does not fit is thrown away. */
static bool read_output(int fd, char *output, size_t size)
{
	char spare[4096];
	size_t have = 0;
	int64_t deadline_ms = wlb_clock_ms() + PROGRAM_MS;
	for (;;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (poll(&ready, 1, wlb_clock_left_ms(deadline_ms)) == 0)
			return false;
		bool full = have + 1 >= size;
		ssize_t n = read(fd, full ? spare : output + have, full ? sizeof(spare) : size - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		have += full ? 0 : (size_t)n;
		output[have] = '\0';
	}
}

int wlb_doctor_ask(char *const argv[], char *output, size_t size)
{
	int ends[2], status;
	output[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDONLY);
		dup2(null, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	bool whole = child > 0 && read_output(ends[0], output, size);
	close(ends[0]);
	if (child > 0 && !whole)
		kill(child, SIGKILL);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status) == 127 ? -1 : WEXITSTATUS(status);
}

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
