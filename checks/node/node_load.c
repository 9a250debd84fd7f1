#include "checks/node/node_load.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "common/cgroup.h"

double wlb_stolen_s(const cpu_set_t *cpus)
{
	char line[512];
	double ticks = 0.0;
	FILE *file = fopen("/proc/stat", "re");
	if (file == NULL)
		return 0.0;
	while (fgets(line, sizeof(line), file) != NULL) {
		int cpu;
		double stolen;
		/* user, nice, system, idle, iowait, irq, softirq, steal */
		if (isdigit((unsigned char)line[3]) &&
		    sscanf(line, "cpu%d %*s %*s %*s %*s %*s %*s %*s %lf", &cpu, &stolen) == 2 && cpu < CPU_SETSIZE &&
		    CPU_ISSET(cpu, cpus))
			ticks += stolen;
	}
	fclose(file);
	return ticks / (double)sysconf(_SC_CLK_TCK);
}

static double available_bytes(void)
{
	char line[128];
	double kib = 0.0;
	FILE *file = fopen("/proc/meminfo", "re");
	if (file == NULL)
		return 0.0;
	while (fgets(line, sizeof(line), file) != NULL && sscanf(line, "MemAvailable: %lf", &kib) != 1)
		;
	fclose(file);
	return 1024.0 * kib;
}

double wlb_free_memory_bytes(void)
{
	return fmin(available_bytes(), wlb_cgroup_free_bytes());
}
