#include "common/cgroup.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/line.h"

static const char root[] = "/sys/fs/cgroup";

/* Is called for the folder of a cgroup; `unified` is 1 for version 2. */
typedef void visitor(const char *folder, int unified, double *sum);

/* Returns the number after `key` in a file of lines "KEY NUMBER", without a key the number that the file is; NAN where
 * there is none, such as "max". */
static double read_number(const char *folder, const char *name, const char *key)
{
	char path[PATH_MAX + 256], word[64];
	double number, found = NAN;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return NAN;
	if (key == NULL && fscanf(file, "%lf", &number) == 1)
		found = number;
	while (key != NULL && isnan(found) && fscanf(file, "%63s %lf", word, &number) == 2)
		if (strcmp(word, key) == 0)
			found = number;
	fclose(file);
	return found;
}

static int has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (; *list != '\0'; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == length && strncmp(list, word, length) == 0)
			return 1;
	return 0;
}

/* Visits the cgroup `path` of a hierarchy, and the cgroups above it. */
static void visit_upwards(const char *hierarchy, char *path, int unified, visitor *visit, double *sum)
{
	char folder[PATH_MAX + 128];
	for (;;) {
		snprintf(folder, sizeof(folder), "%s%s%s", root, hierarchy, path);
		visit(folder, unified, sum);
		char *slash = strrchr(path, '/');
		if (slash == NULL)
			return;
		*slash = '\0';
	}
}

/* Visits the cgroups of this process that the controller may be in: lines "ID:CONTROLLERS:PATH". */
static void visit_all(const char *controller, visitor *visit, double *sum)
{
	char line[PATH_MAX], hierarchy[64];
	FILE *file = fopen("/proc/self/cgroup", "re");
	if (file == NULL)
		return;
	snprintf(hierarchy, sizeof(hierarchy), "/%s", controller);
	const char *unified = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? "" : "/unified";
	while (wlb_line_read(file, line, sizeof(line), NULL, NULL) > 0) {
		char *controllers = strchr(line, ':'), *path = NULL;
		if (controllers != NULL)
			path = strchr(++controllers, ':');
		if (path == NULL)
			continue;
		*path++ = '\0';
		if (strcmp(path, "/") == 0)
			*path = '\0';
		if (*controllers == '\0')
			visit_upwards(unified, path, 1, visit, sum);
		else if (has_word(controllers, controller))
			visit_upwards(hierarchy, path, 0, visit, sum);
	}
	fclose(file);
}

static void add_throttled(const char *folder, int unified, double *sum_s)
{
	double count = read_number(folder, "cpu.stat", unified ? "throttled_usec" : "throttled_time");
	if (count > 0.0)
		*sum_s += count * (unified ? 1e-6 : 1e-9);
}

/* Bytes of the pages of files, which the kernel drops where processes need memory, of the cgroup and the cgroups below
 * it. */
static double file_bytes(const char *folder, int unified)
{
	double inactive = read_number(folder, "memory.stat", unified ? "inactive_file" : "total_inactive_file");
	double active = read_number(folder, "memory.stat", unified ? "active_file" : "total_active_file");
	return fmax(inactive, 0.0) + fmax(active, 0.0); /* NAN, where there is no number, counts as 0 */
}

static double limit_bytes(const char *folder, int unified)
{
	return read_number(folder, unified ? "memory.max" : "memory.limit_in_bytes", NULL);
}

static void take_limit(const char *folder, int unified, double *min_bytes)
{
	*min_bytes = fmin(*min_bytes, limit_bytes(folder, unified)); /* NAN, where there is none, is passed over */
}

static void take_free(const char *folder, int unified, double *min_bytes)
{
	double limit = limit_bytes(folder, unified);
	double used = read_number(folder, unified ? "memory.current" : "memory.usage_in_bytes", NULL);
	if (!isnan(limit) && !isnan(used))
		*min_bytes = fmin(*min_bytes, fmax(0.0, limit - used + file_bytes(folder, unified)));
}

double wlb_cgroup_throttled_s(void)
{
	double sum_s = 0.0;
	visit_all("cpu", add_throttled, &sum_s);
	return sum_s;
}

double wlb_cgroup_free_bytes(void)
{
	double min_bytes = INFINITY;
	visit_all("memory", take_free, &min_bytes);
	return min_bytes;
}

double wlb_cgroup_limit_bytes(void)
{
	double min_bytes = INFINITY;
	visit_all("memory", take_limit, &min_bytes);
	return min_bytes;
}
