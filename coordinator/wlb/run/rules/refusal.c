#include "coordinator/wlb/run/rules/refusal.h"

#include <string.h>

#include "libwlb/wlb.h"

static const char other_option[] =
	"correct that option in --srun-args, or the variable of srun's (SLURM_...) that sets it";

/* A line that begins with `begin` and has `text` after that. */
struct refused {
	const char *begin, *text, *remedy;
};

/* The texts of slurm_errno.c are the same from 22.05 to 26.05, and those of srun's options but for the option's name.
 */
static const struct refused table[] = {
	{"srun: error: Unable to create step for job ", ": More processors requested than permitted",
         "the job has fewer CPUs than the tasks need: submit it with --ntasks-per-node and --cpus-per-task as the "
         "tasks need "
         "them, or give `wlb run` a smaller --tasks-per-node, or --srun-args=--overcommit"},
	{"srun: error: Unable to create step for job ", ": Invalid generic resource (gres) specification",
         "ask for the GPUs at submission, as in sbatch --gpus-per-node=8, or for fewer in --srun-args"},
	{"srun: error: Unable to create step for job ", ": Invalid GRES specification", other_option},
	{"srun: error: Unable to create step for job ", ": Requested GRES option unsupported", other_option},
	{"srun: error: Unable to create step for job ", ": Requested node configuration is not available",
         "the job does not have such nodes: correct --nodelist, --nodes and the like in --srun-args"},
	{"srun: error: Unable to create step for job ", ": Invalid node name specified", other_option},
	{"srun: error: Unable to create step for job ", ": Node count specification invalid", other_option},
	{"srun: error: Unable to create step for job ", ": Invalid feature specification", other_option},
	{"srun: error: Unable to create step for job ", ": CPU count specification invalid", other_option},
	{"srun: error: Unable to create step for job ", ": Task count specification invalid", other_option},
	{"srun: error: Unable to create step for job ", ": Task distribution specification invalid", other_option},
	{"srun: error: Unable to create step for job ", ": Cannot request more threads per core", other_option},
	{"srun: error: Unable to create step for job ", ": Invalid Trackable RESource (TRES) specification",
         other_option},
	{"srun: error: Unable to create step for job ", ": Pathname of a file, directory or other parameter too long",
         other_option},
	{"srun: error: Unable to create step for job ", ": Requested time limit is invalid", other_option},
	{"srun: error: Unable to create step for job ", ": Requested operation not supported on this system",
         other_option},
	{"srun: error: Unable to create step for job ", ": Step limit reached for this job",
         "MaxStepCount of slurm.conf allows a job no more: submit a new one; it continues from the checkpoint"},
	{"srun: unrecognized option ", "", "this release of srun does not know it: correct --srun-args"},
	{"srun: invalid option ", "", "this release of srun does not know it: correct --srun-args"},
	{"srun: option ", " is ambiguous", other_option},
	{"srun: option ", " requires an argument", other_option},
	{"srun: option ", " doesn't allow an argument", other_option},
	{"srun: error: Invalid MPI type ", "",
         "Slurm's PMIx plugin (mpi_pmix) is missing on this host: see `srun --mpi=list` and `wlb doctor`"},
	{"srun: error: Invalid -", "", other_option},
	{"srun: error: invalid -", "", other_option},
	{"srun: error: Invalid numeric value ", "", other_option},
	{"srun: error: Invalid generic resource (gres) specification", "", other_option},
	{"srun: error: Invalid node list ", "", other_option},
	{"srun: error: Invalid hostfile ", "", other_option},
	{"srun: error: Invalid plane size ", "", other_option},
	{"srun: error: Invalid task ", "", other_option},
	{"srun: error: invalid number of ", "", other_option},
	{"srun: error: unrecognized -", "", other_option},
	{"srun: error: ", "mutually exclusive", other_option},
	{"srun: fatal: ", "mutually exclusive", other_option},
	{"srun: fatal: ", "nvalid -", other_option},
	{"srun: fatal: ", "Invalid node list ", other_option},
	{"srun: fatal: ", "option invalid ", other_option},
	{"srun: error: Could not open std", ": No such file or directory",
         "make that file's folder, or correct the option in --srun-args"},
	{"srun: error: Could not open std", ": Permission denied",
         "the file must be yours to open: correct the option in --srun-args"},
	{"srun: error: Could not open std", ": Is a directory", other_option},
	{"srun: error: Could not open multi_prog config file ", "", other_option},
	{"srun: error: Requested het-group offset exceeds ", "", other_option},
	{"wlb: srun cannot be run: ", "", "srun must be in PATH"},
};

static const struct refused of_tasks[] = {
	{" error: execve(): ", ": No such file or directory",
         "the command, and the interpreter of a script, must be there on each node: give its full path, or correct "
         "PATH"},
	{" error: execve(): ", ": Permission denied", "make the command executable (chmod +x) on each node"},
	{" error: execve(): ", ": Exec format error",
         "a script must begin with a line such as #!/bin/bash, and a program be one for these processors"},
	{" error: execve(): ", ": Is a directory", "give the path of a program"},
};

/* The plugin refuses a step with a line of its own, before this one of srun's. */
static const char of_plugin[] = "srun: error: wlb: ", plugin_failed[] = "srun: error: Failure in local plugin stack";

/* Keeps the words after "srun: error: " and the like. */
static void take(struct wlb_refusal *refusal, const char *words, const char *remedy)
{
	static const char *const begins[] = {"srun: error: ", "srun: fatal: ", "srun: ", "wlb: ", " error: "};
	if (refusal->known)
		return;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(words, begins[i], strlen(begins[i])) == 0) {
			words += strlen(begins[i]);
			break;
		}
	refusal->known = true;
	refusal->remedy = remedy;
	wlb_text_show(refusal->why, sizeof(refusal->why), words);
}

/* slurmstepd writes such a line for each task. Its name may have the node's name, or be a time in brackets, and the
 * number of the task may come before it (srun --label). */
static bool read_of_task(struct wlb_refusal *refusal, const char *line)
{
	for (size_t i = 0; i < sizeof(of_tasks) / sizeof(of_tasks[0]); i++) {
		bool is_of_slurm = strstr(line, "slurmstepd") != NULL || strchr(line, '[') != NULL;
		const char *at = is_of_slurm ? strstr(line, of_tasks[i].begin) : NULL;
		if (at == NULL || strstr(at, of_tasks[i].text) == NULL)
			continue;
		take(refusal, at, of_tasks[i].remedy);
		refusal->failed_tasks++;
		return true;
	}
	return false;
}

void wlb_refusal_read(struct wlb_refusal *refusal, const char *line)
{
	if (read_of_task(refusal, line))
		return;
	if (strncmp(line, of_plugin, strlen(of_plugin)) == 0)
		wlb_text_show(refusal->plugin, sizeof(refusal->plugin), line);
	if (refusal->plugin[0] != '\0' && strncmp(line, plugin_failed, strlen(plugin_failed)) == 0)
		take(refusal, refusal->plugin, "correct --wlb-layout, or the options of srun that change the tasks");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strncmp(line, table[i].begin, strlen(table[i].begin)) == 0 &&
		    strstr(line + strlen(table[i].begin), table[i].text) != NULL) {
			take(refusal, line, table[i].remedy);
			return;
		}
}
