#include "planner/node_type.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cgroup.h"

enum { NAME_BYTES = 48 };

/* Copies the value of a line "KEY : VALUE", without spaces at its ends; returns 0 where the line has another key. */
static int read_value(const char *line, const char *key, char value[NAME_BYTES])
{
	size_t length = strlen(key);
	if (strncmp(line, key, length) != 0)
		return 0;
	line += length + strspn(line + length, " \t");
	if (*line != ':')
		return 0;
	snprintf(value, NAME_BYTES, "%s", line + 1 + strspn(line + 1, " \t"));
	for (char *c = value; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = ' ';
	for (size_t end = strlen(value); end > 0 && value[end - 1] == ' ';)
		value[--end] = '\0';
	return 1;
}

void wlb_node_type_of_cpu(FILE *cpuinfo, int processors, char *type, size_t size)
{
	char name[NAME_BYTES] = "", maker[NAME_BYTES] = "", part[NAME_BYTES] = "", *line = NULL;
	size_t capacity = 0;
	while (cpuinfo != NULL && getline(&line, &capacity, cpuinfo) > 0 && !read_value(line, "model name", name)) {
		read_value(line, "CPU implementer", maker);
		read_value(line, "CPU part", part);
	}
	free(line);
	if (name[0] != '\0')
		snprintf(type, size, "%s x %d", name, processors);
	else if (maker[0] != '\0' && part[0] != '\0')
		snprintf(type, size, "CPU %s part %s x %d", maker, part, processors);
	else
		snprintf(type, size, WLB_NODE_TYPE_UNKNOWN "%d", processors);
}

int wlb_gpu_type(char *type, size_t size)
{
	static const char *const variables[] = {"SLURM_GPUS_PER_NODE", "SLURM_GPUS"};
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);
		size_t length = value != NULL ? strcspn(value, ":") : 0;
		int of_several_types = value != NULL && strchr(value, ',') != NULL;
		if (value != NULL && value[length] == ':' && length < size && !of_several_types) {
			snprintf(type, size, "%.*s", (int)length, value);
			return 1;
		}
	}
	return 0;
}

void wlb_node_type(int gpus, char *type, size_t size)
{
	char named[64];
	if (gpus) {
		int known = wlb_gpu_type(named, sizeof(named));
		snprintf(type, size, "gpu%s%s", known ? ":" : "", known ? named : "");
		return;
	}
	FILE *cpuinfo = fopen("/proc/cpuinfo", "re");
	wlb_node_type_of_cpu(cpuinfo, (int)sysconf(_SC_NPROCESSORS_ONLN), type, size);
	if (cpuinfo != NULL)
		fclose(cpuinfo);
}

double wlb_node_memory_bytes(void)
{
	double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	return fmin(bytes, wlb_cgroup_limit_bytes());
}

/* Returns the number that a variable of the job's environment holds; INFINITY where there is none, or none above 0:
 * --mem=0 asks for all memory. */
static double number_of_job(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	double number = text != NULL ? strtod(text, &end) : 0.0;
	return number > 0.0 && *end == '\0' ? number : INFINITY;
}

double wlb_job_memory_bytes(void)
{
	static const double mebibyte = 1024.0 * 1024.0;
	double of_cpus = number_of_job("SLURM_MEM_PER_CPU") * number_of_job("SLURM_CPUS_ON_NODE");
	return fmin(wlb_node_memory_bytes(), mebibyte * fmin(number_of_job("SLURM_MEM_PER_NODE"), of_cpus));
}
