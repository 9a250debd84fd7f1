#include "spank/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char run_prefix[] = "SLURM_WLB_";

void wlb_environment_set(spank_t sp, const char *name, const char *value)
{
	char variable[128];
	snprintf(variable, sizeof(variable), "SLURM_WLB_%s", name);
	if (spank_setenv(sp, variable, value, 1) != ESPANK_SUCCESS ||
	    spank_setenv(sp, variable + strlen("SLURM_"), value, 1) != ESPANK_SUCCESS)
		slurm_error("wlb: Slurm does not set %s in the job's environment", variable);
}

void wlb_environment_set_number(spank_t sp, const char *name, long value)
{
	char text[32];
	snprintf(text, sizeof(text), "%ld", value);
	wlb_environment_set(sp, name, text);
}

/* The next variable of a run at or after *at in the job's environment; NULL if there is none. Setting a variable may
 * move the array, so the array is fetched each time. */
static const char *next_entry(spank_t sp, size_t *at)
{
	char **entries = NULL;
	if (spank_get_item(sp, S_JOB_ENV, &entries) != ESPANK_SUCCESS || entries == NULL)
		return NULL;
	for (size_t i = 0; entries[i] != NULL; i++)
		if (i >= *at && strncmp(entries[i], run_prefix, strlen(run_prefix)) == 0) {
			*at = i + 1;
			return entries[i];
		}
	return NULL;
}

void wlb_environment_restore(spank_t sp)
{
	size_t at = 0;
	for (const char *entry; (entry = next_entry(sp, &at)) != NULL;) {
		char *copy = strdup(entry + strlen("SLURM_"));
		char *equals = copy ? strchr(copy, '=') : NULL;
		if (equals != NULL) {
			*equals = '\0';
			spank_setenv(sp, copy, equals + 1, 1);
		}
		free(copy);
	}
}

void wlb_environment_get(spank_t sp, const char *name, char *value, size_t size)
{
	if (spank_getenv(sp, name, value, (int)size) != ESPANK_SUCCESS)
		value[0] = '\0';
}
