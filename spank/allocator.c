/* sbatch and salloc, before they read their options. */
#include "spank/allocator.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank/options.h"

/* Slurm stores a job's options under this prefix for the srun of its script. */
static const char inherited_options[] = "SLURM_SPANK__SLURM_SPANK_OPTION_wlb_";
static const char run_prefix[] = "SLURM_WLB_";

static int starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Unsets the variable of an "NAME=value" entry, and with SLURM_WLB_X also WLB_X. */
static void drop_entry(const char *entry)
{
	char *name = strndup(entry, strcspn(entry, "="));
	if (name == NULL)
		return;
	if (starts_with(name, run_prefix))
		unsetenv(name + strlen("SLURM_"));
	unsetenv(name);
	free(name);
}

/* A job submitted from within a run is a separate job: it inherits neither the run's name nor its options. */
void wlb_allocator_clear_environment(void)
{
	if (getenv(wlb_spank_option_variable(WLB_OPTION_LAYOUT)) == NULL)
		return;
	for (char **entry = environ; *entry != NULL;) {
		if (starts_with(*entry, run_prefix) || starts_with(*entry, inherited_options)) {
			drop_entry(*entry);
			entry = environ; /* unsetenv moved the entries */
		} else {
			entry++;
		}
	}
}
