#include "coordinator/wlb/doctor/worker.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/wlb/child_output.h"

/* Runs wlb-worker of PATH, else that beside this program, with one argument or two. Returns its exit code, or -1. */
static int run_worker(char *first, char *second, char *output, size_t size)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof("/wlb-worker"));
	int code = wlb_output_of_program((char *[]){"wlb-worker", first, second, NULL}, output, size);
	if (code >= 0 || length <= 0)
		return code;
	path[length] = '\0';
	snprintf(strrchr(path, '/'), sizeof("/wlb-worker"), "/wlb-worker");
	return wlb_output_of_program((char *[]){path, first, second, NULL}, output, size);
}

void wlb_doctor_worker(struct wlb_doctor *doctor)
{
	char output[1024];
	int code = run_worker("--version", NULL, output, sizeof(output));
	output[strcspn(output, "\n")] = '\0';
	if (code == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "worker", "", "%s", output);
	else if (code < 0)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "worker", "add its directory to PATH, or run another trainer",
		                "wlb-worker is not found");
	else
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "worker", "install what it needs",
		                "wlb-worker does not run: %s", output);
}

static size_t count_device_files(void)
{
	glob_t files;
	if (glob("/dev/nvidia[0-9]*", 0, NULL, &files) != 0)
		return 0;
	size_t count = files.gl_pathc;
	globfree(&files);
	return count;
}

/* Returns how many tasks a node of this job has, from the first entry of "8(x2),4"; 0 outside a job. */
static long tasks_of_node(void)
{
	const char *tasks = getenv("SLURM_TASKS_PER_NODE");
	return tasks != NULL ? strtol(tasks, NULL, 10) : 0;
}

/* Appends `count` GPUs of which this is one. */
static void describe(const json_t *gpu, size_t count, char *text, size_t size)
{
	const char *model = "?", *driver = "", *driver_cuda = "?", *cuda = "?";
	json_int_t memory = 0;
	size_t used = strlen(text);
	json_unpack((json_t *)gpu, "{s?s, s?I, s?s, s?s, s?s}", "model", &model, "memory_bytes", &memory, "driver",
	            &driver, "driver_cuda", &driver_cuda, "cuda", &cuda);
	snprintf(text + used, size - used, "%s%zu x %s, %.1f GB, driver %s for CUDA %s, wlb-worker has CUDA %s",
	         used > 0 ? "; " : "", count, model, 1e-9 * (double)memory, *driver ? driver : "unknown", driver_cuda,
	         cuda);
}

static void note_gpus(struct wlb_doctor *doctor, const json_t *gpus)
{
	char text[1024] = "";
	size_t count = json_array_size(gpus);
	long tasks = tasks_of_node(), of_gpu = (tasks + (long)count - 1) / (long)count;
	for (size_t i = 0, alike; i < count; i += alike) {
		for (alike = 1; i + alike < count; alike++)
			if (!json_equal(json_array_get(gpus, i), json_array_get(gpus, i + alike)))
				break;
		describe(json_array_get(gpus, i), alike, text, sizeof(text));
	}
	if (of_gpu > 1)
		wlb_doctor_note(
			doctor, WLB_FINDING_WARN, "gpus", "give each task a GPU of its own: --ntasks-per-node",
			"%s; %ld tasks of a node are %ld ranks a GPU, between which messages go through host memory",
			text, tasks, of_gpu);
	else
		wlb_doctor_note(doctor, WLB_FINDING_OK, "gpus", "", "%s", text);
}

void wlb_doctor_gpus(struct wlb_doctor *doctor)
{
	char output[16384];
	size_t files = count_device_files();
	const char *reason = "wlb-worker does not list them";
	int code = run_worker("gpus", "--json", output, sizeof(output));
	json_t *found = code == 0 ? json_loads(output, 0, NULL) : NULL, *gpus = json_object_get(found, "gpus");
	json_unpack(found, "{s?s}", "reason", &reason);
	if (json_array_size(gpus) > 0 && *reason != '\0')
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "gpus", "correct that, or leave the GPU out of gres.conf",
		                "%zu GPUs can be used, and the next one cannot: %s", json_array_size(gpus), reason);
	else if (json_array_size(gpus) > 0)
		note_gpus(doctor, gpus);
	else if (files == 0)
		wlb_doctor_note(doctor, WLB_FINDING_INFO, "gpus", "",
		                "none on this host: a run here computes on the CPU");
	else
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "gpus",
		                "check the driver with nvidia-smi, and that wlb-worker was built with CUDA",
		                "%zu device files, but no GPU can be used: %s", files, reason);
	json_decref(found);
}
